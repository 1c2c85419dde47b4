import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 23
WIDTH = 170


class Model(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        return F.silu(a) * b


def get_inputs():
    return [torch.randn(ROWS, 2 * WIDTH)]


def get_init_inputs():
    return []
