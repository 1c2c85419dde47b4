import torch
import torch.nn as nn


class Model(nn.Module):
    """The first input where it is not less than the second."""

    def forward(self, x, y):
        return torch.where(x >= y, x, 0.5 * y)


def get_inputs():
    return [torch.randn(60, 130), torch.randn(60, 130)]


def get_init_inputs():
    return []
