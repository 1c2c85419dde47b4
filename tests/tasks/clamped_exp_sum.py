import torch
import torch.nn as nn

ROWS = 50
COLS = 130


class Model(nn.Module):
    def forward(self, x):
        return nn.functional.hardtanh(0.1 * x + 1.5 * torch.exp(-x.abs()))


def get_inputs():
    return [40 + 20 * torch.rand(ROWS, COLS)]


def get_init_inputs():
    return []
