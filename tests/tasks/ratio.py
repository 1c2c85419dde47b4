import torch
import torch.nn as nn

ROWS = 131
COLS = 320


class Model(nn.Module):
    def forward(self, x):
        return x * 3.0 / (x.abs() * 1e37 + 1e38)


def get_inputs():
    return [torch.rand(ROWS, COLS) * 9 + 1e36]


def get_init_inputs():
    return []
