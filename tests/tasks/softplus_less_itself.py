import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """What softplus adds to its argument, of unit length in each row; above its threshold it adds nothing."""

    def forward(self, x):
        y = F.softplus(x) - x
        return y / (y.norm(dim=-1, keepdim=True) + 1e-6)


def get_inputs():
    return [torch.rand(60, 130)]


def get_init_inputs():
    return []
