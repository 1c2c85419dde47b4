import torch
import torch.nn as nn


class Model(nn.Module):
    """The bucket of each element, a quarter each."""

    def forward(self, x, edges):
        return torch.bucketize(x, edges).float() * 0.25


def get_inputs():
    return [torch.randn(60, 130), torch.randn(9).sort().values]


def get_init_inputs():
    return []
