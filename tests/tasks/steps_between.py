import torch
import torch.nn as nn


class Model(nn.Module):
    """Numbers at equal steps between two scalars, and work on a large tensor."""

    def forward(self, low, high, x):
        steps = torch.arange(9, device=x.device) / 8
        return low + (high - low) * steps, torch.exp(-x * x)


def get_inputs():
    return [torch.randn(()), torch.randn(()), torch.randn(300, 400)]


def get_init_inputs():
    return []
