import torch
import torch.nn as nn


class Model(nn.Module):
    """Mixes channels by a matrix that begins as the identity."""

    def __init__(self, width):
        super().__init__()
        self.mix = nn.Parameter(torch.eye(width))

    def forward(self, x):
        return torch.relu(x @ self.mix)


def get_inputs():
    return [torch.randn(90, 64)]


def get_init_inputs():
    return [64]
