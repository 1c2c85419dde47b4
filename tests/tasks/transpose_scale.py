import torch
import torch.nn as nn

ROWS = 150
COLS = 203


class Model(nn.Module):
    def forward(self, x):
        return (2.0 * x).t().contiguous()


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
