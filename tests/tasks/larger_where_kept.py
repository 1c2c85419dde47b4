import torch
import torch.nn as nn


class Model(nn.Module):
    """The larger of a row's distance from its maximum and a bound, where a third input lets it through."""

    def forward(self, x, y, z):
        t = x - x.amax(1, keepdim=True)
        bound = -y.abs()
        return torch.where(t > bound, t, bound) * (z > 0.1).float()


def get_inputs():
    return [torch.randn(60, 130), torch.randn(60, 130), torch.randn(60, 130)]


def get_init_inputs():
    return []
