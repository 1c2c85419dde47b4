import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 1024
DIM = 1024
HIDDEN = 2816


class Model(nn.Module):
    """RMS norm and a gated feed-forward part."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM, HIDDEN]
