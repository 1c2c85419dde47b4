import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.rand(130) + 0.5)

    def forward(self, x):
        return x * self.s.clamp(-1000.0, 1000.0)


def get_inputs():
    return [torch.randn(60, 130)]


def get_init_inputs():
    return []
