import torch
import torch.nn as nn

ROWS = 7
WIDTH = 11


class Model(nn.Module):
    """Where each of a few rows is greatest, once what is below -1 was replaced."""

    def forward(self, x, y):
        return torch.where(x < -1.0, y, x).argmax(dim=-1)


def get_inputs():
    return [torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []
