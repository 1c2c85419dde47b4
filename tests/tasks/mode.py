import torch
import torch.nn as nn

ROWS = 45
COLS = 128


class Model(nn.Module):
    """The value that a row has most often: an operator that the compiler has no kernel for."""

    def forward(self, x):
        return torch.mode(x, dim=-1).values


def get_inputs():
    return [torch.randn(ROWS, COLS).round()]


def get_init_inputs():
    return []
