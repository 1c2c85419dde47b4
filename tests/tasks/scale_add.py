import torch
import torch.nn as nn

N = 131072
ALPHA = 3


class Model(nn.Module):
    """y + alpha * x, alpha an argument of the constructor."""

    def __init__(self, alpha):
        super().__init__()
        self.alpha = alpha

    def forward(self, x, y):
        return y + self.alpha * x


def get_inputs():
    return [torch.rand(N), torch.rand(N)]


def get_init_inputs():
    return [ALPHA]
