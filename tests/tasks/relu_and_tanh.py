import torch
import torch.nn as nn


class Model(nn.Module):
    """Two functions of one input."""

    def forward(self, x):
        return torch.relu(x), torch.tanh(x)


def get_inputs():
    return [torch.randn(60, 130)]


def get_init_inputs():
    return []
