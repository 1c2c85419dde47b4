import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(64) + 0.5)

    def forward(self, x):
        return x * self.w


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return []
