import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 8
LENGTH = 1024
DIM = 512


class Model(nn.Module):
    """A short causal convolution of each channel and a gate."""

    def __init__(self, dim):
        super().__init__()
        self.inp = nn.Linear(dim, 2 * dim, bias=False)
        self.conv = nn.Conv1d(dim, dim, 4, groups=dim, padding=3)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        y, z = self.inp(x).chunk(2, dim=-1)
        y = F.silu(self.conv(y.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        return self.out(y * F.silu(z))


def get_inputs():
    return [torch.randn(BATCH, LENGTH, DIM)]


def get_init_inputs():
    return [DIM]
