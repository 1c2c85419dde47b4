import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 64
COLS = 24


class Model(nn.Module):
    def forward(self, x):
        return torch.argmin(F.layer_norm(torch.tanh(x * x + 6), (COLS,)), -1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
