import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('order', (torch.arange(64) * 5) % 64)

    def forward(self, x):
        return x[:, self.order] * 2


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return []
