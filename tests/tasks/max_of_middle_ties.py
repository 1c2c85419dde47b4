import torch
from torch import nn


class Model(nn.Module):
    """The largest of each row of rectified numbers, many of which are equal."""

    def forward(self, x):
        return torch.max((x - 2).relu(), dim=2).values * 2 + x.mean(2)


def get_inputs():
    return [torch.randn(6, 5, 33)]


def get_init_inputs():
    return []
