import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 16
DIM = 96
SIDE = 56


class Model(nn.Module):
    """A 7x7 depthwise convolution and an inverted bottleneck over channels-last rows."""

    def __init__(self, dim):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(0.1 * torch.ones(dim))

    def forward(self, x):
        y = self.dwconv(x).permute(0, 2, 3, 1)
        y = self.gamma * self.down(F.gelu(self.up(self.norm(y))))
        return x + y.permute(0, 3, 1, 2)


def get_inputs():
    return [torch.randn(BATCH, DIM, SIDE, SIDE)]


def get_init_inputs():
    return [DIM]
