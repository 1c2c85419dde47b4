"""liger-kernel: RMS norm, one row a program.

reference: liger_rms_norm.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
from liger_kernel.ops.rms_norm import LigerRMSNormFunction

ROWS = 31
WIDTH = 300


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return LigerRMSNormFunction.apply(x, self.weight, 1e-6, 0.0, "llama", False, None)


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []
