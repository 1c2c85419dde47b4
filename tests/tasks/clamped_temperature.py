import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.tensor(0.7))

    def forward(self, x):
        s = self.s
        return x / s.clamp(min=0.01, max=5.0)


def get_inputs():
    return [torch.randn(60, 130)]


def get_init_inputs():
    return []
