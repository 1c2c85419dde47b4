import torch
import torch.nn as nn


class Model(nn.Module):
    """The share of a row that is at least a half."""

    def forward(self, x):
        return (x >= 0.5).float().mean(-1)


def get_inputs():
    return [torch.randn(70, 300)]


def get_init_inputs():
    return []
