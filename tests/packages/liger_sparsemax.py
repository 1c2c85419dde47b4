"""liger-kernel: sparsemax, by sorting in the kernel or before it.

reference: liger_sparsemax.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
from liger_kernel.ops.sparsemax import LigerSparsemaxFunction

ROWS = 13
WIDTH = 100


class Model(nn.Module):
    def forward(self, x):
        z = torch.sort(x, dim=-1, descending=True).values
        sums = torch.cumsum(z, -1)
        k = torch.arange(1, WIDTH + 1, device=x.device, dtype=x.dtype)
        size = (1 + k * z > sums).sum(-1, keepdim=True)
        threshold = (sums.gather(-1, size - 1) - 1) / size
        return torch.relu(x - threshold)


class ModelNew(nn.Module):
    def forward(self, x):
        return LigerSparsemaxFunction.apply(x, -1)


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []
