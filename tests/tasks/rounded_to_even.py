import torch
import torch.nn as nn


class Model(nn.Module):
    """Rounds halves to the even number."""

    def forward(self, x):
        return torch.round(x) + 0.5 * x


def get_inputs():
    return [torch.randn(60, 130)]


def get_init_inputs():
    return []
