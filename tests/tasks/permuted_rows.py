import torch
import torch.nn as nn


class Model(nn.Module):
    """Puts row i at place[i]: a permutation."""

    def forward(self, x, place):
        return torch.zeros_like(x).index_copy(0, place, x) * 2.0


def get_inputs():
    return [torch.randn(100, 30), torch.randperm(100)]


def get_init_inputs():
    return []
