import torch
import torch.nn as nn

ROWS = 131
COLS = 320


class Model(nn.Module):
    def forward(self, x):
        return torch.pow(x, 2.5)


def get_inputs():
    return [torch.rand(ROWS, COLS) * 60]


def get_init_inputs():
    return []
