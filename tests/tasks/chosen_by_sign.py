import torch
import torch.nn as nn

ROWS = 40
COLS = 56


class Model(nn.Module):
    def forward(self, gate, x, y):
        return torch.where(gate > 0, x.clamp(-0.5, 1), y)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
