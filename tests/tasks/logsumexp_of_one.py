import torch
import torch.nn as nn


class Model(nn.Module):
    """How far the logsumexp of blocks is above their maximum, as a share of each row's."""

    def forward(self, x):
        above = x[:, :, None].logsumexp(-1) - x + torch.where(x < 0, x.exp(), 0.0)
        return above / (above.sum(1, keepdim=True) + 1e-5)


def get_inputs():
    return [torch.randn(40, 64)]


def get_init_inputs():
    return []
