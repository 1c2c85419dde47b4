import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The softplus of earlier steps, each step normalised."""

    def forward(self, x):
        y = F.softplus(x, beta=3.0)
        return F.normalize(torch.cumsum(y, 1) - y, dim=-1)


def get_inputs():
    return [torch.randn(24, 4, 16)]


def get_init_inputs():
    return []
