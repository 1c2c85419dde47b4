import torch
import torch.nn as nn

ROWS = 18
WIDTH = 130


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((3,), 1.0 / 3.0))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        powers = [p * torch.rsqrt(p.pow(2).mean(-1, keepdim=True) + 1e-6) for p in (x**3, x**2, x)]
        return sum(w * p for w, p in zip(self.weight, powers)) + self.bias


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []
