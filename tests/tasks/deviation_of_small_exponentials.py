import torch
import torch.nn as nn


class Model(nn.Module):
    """Standard deviation of numbers that reach 1e-30, whose squares float32 does not have."""

    def forward(self, x):
        return torch.exp(-0.1 * x.abs().mean(-1)).std(-1)


def get_inputs():
    return [torch.randn(16, 2, 64)]


def get_init_inputs():
    return []
