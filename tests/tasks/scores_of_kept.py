import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 48
COLS = 80


class Model(nn.Module):
    def forward(self, x, kept):
        return torch.where(kept == 1, x, -4.0).softmax(-1)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.bernoulli(torch.full((ROWS, COLS), 0.7))]


def get_init_inputs():
    return []
