import torch
import torch.nn as nn


class Model(nn.Module):
    """Adds to its first input in place, and returns something else."""

    def forward(self, x, y):
        x += y
        return torch.tanh(x) * 0.5


def get_inputs():
    return [torch.randn(60, 130), torch.randn(60, 130)]


def get_init_inputs():
    return []
