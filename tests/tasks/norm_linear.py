import torch
import torch.nn as nn

ROWS = 80
WIDTH = 128
OUT = 96


class Model(nn.Module):
    def __init__(self, width, out_features):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.proj = nn.Linear(width, out_features)

    def forward(self, x):
        return self.proj(self.norm(x))


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return [WIDTH, OUT]
