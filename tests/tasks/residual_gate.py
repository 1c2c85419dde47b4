import torch
import torch.nn as nn

BATCH = 40
WIDTH = 96


class Model(nn.Module):
    """x + gate * (x @ w): the gate starts at zero, so default parameters hide the product."""

    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width, bias=False)
        self.gate = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return x + self.gate * self.proj(x)


def get_inputs():
    return [torch.randn(BATCH, WIDTH)]


def get_init_inputs():
    return [WIDTH]
