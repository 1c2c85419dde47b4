import torch
import torch.nn as nn


class Model(nn.Module):
    """Five rounds of Sinkhorn's normalisation of rows and columns, by logarithms."""

    def forward(self, x):
        for _ in range(5):
            x = x - x.logsumexp(-1, keepdim=True)
            x = x - x.logsumexp(-2, keepdim=True)
        return x.exp()


def get_inputs():
    return [torch.randn(6, 24, 20)]


def get_init_inputs():
    return []
