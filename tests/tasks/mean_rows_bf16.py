import torch
import torch.nn as nn

ROWS = 512
COLS = 192


class Model(nn.Module):
    def forward(self, x):
        return x.mean(0)


def get_inputs():
    return [torch.randn(ROWS, COLS).to(torch.bfloat16)]


def get_init_inputs():
    return []
