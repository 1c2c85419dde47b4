import torch
import torch.nn as nn

BATCH = 16
SIDE = 224
PATCH = 16
DIM = 384


class Model(nn.Module):
    """Patches become tokens; a class token goes first and every place has its vector."""

    def __init__(self, side, patch, dim):
        super().__init__()
        count = (side // patch) ** 2
        self.proj = nn.Conv2d(3, dim, patch, stride=patch)
        self.cls = nn.Parameter(torch.randn(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, count + 1, dim))

    def forward(self, x):
        tokens = self.proj(x).flatten(2).transpose(1, 2)
        return torch.cat([self.cls.expand(x.shape[0], -1, -1), tokens], dim=1) + self.pos


def get_inputs():
    return [torch.randn(BATCH, 3, SIDE, SIDE)]


def get_init_inputs():
    return [SIDE, PATCH, DIM]
