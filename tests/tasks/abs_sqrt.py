import torch
import torch.nn as nn

N = 40961


class Model(nn.Module):
    """The inputs are uniform on [0, 1): only other inputs show the abs."""

    def forward(self, x):
        return torch.sqrt(torch.abs(x))


def get_inputs():
    return [torch.rand(N)]


def get_init_inputs():
    return []
