import torch
import torch.nn as nn

ROWS = 300
COLS = 130
PICKED = 77


class Model(nn.Module):
    def forward(self, x, index, weight):
        return x.index_select(0, index) * weight[:, None]


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randint(0, ROWS, (PICKED,)), torch.rand(PICKED)]


def get_init_inputs():
    return []
