import torch
import torch.nn as nn


class Model(nn.Module):
    """Distances of a few points, and work on a large tensor."""

    def forward(self, a, b, x):
        return torch.cdist(a, b), torch.exp(-x * x)


def get_inputs():
    return [torch.randn(24, 8), torch.randn(20, 8), torch.randn(700, 800)]


def get_init_inputs():
    return []
