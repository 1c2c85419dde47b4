import torch
from torch import nn


class Model(nn.Module):
    """The score of each group behind a clamp that few draws leave: most outputs are its bound."""

    def forward(self, x, w):
        score = (x * w).sum(-1) / 8
        return (score.abs().amin(0) * 40).clamp(max=1.0)


def get_inputs():
    return [torch.randn(2, 4, 64), torch.randn(4, 64)]


def get_init_inputs():
    return []
