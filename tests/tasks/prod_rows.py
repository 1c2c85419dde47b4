import torch
import torch.nn as nn

ROWS = 70
COLS = 600


class Model(nn.Module):
    def forward(self, x):
        return torch.prod(x, 1)


def get_inputs():
    return [1 + 0.05 * torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
