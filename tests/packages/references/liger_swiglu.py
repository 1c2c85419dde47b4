import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 23
WIDTH = 170


class Model(nn.Module):
    def forward(self, a, b):
        return F.silu(a) * b


def get_inputs():
    return [torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []
