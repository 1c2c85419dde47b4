import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.tensor(0.0))

    def forward(self, x):
        return x * self.s.exp().clamp(min=1e-4, max=1e4)


def get_inputs():
    return [torch.randn(60, 130)]


def get_init_inputs():
    return []
