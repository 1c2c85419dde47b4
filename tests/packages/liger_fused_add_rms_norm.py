"""liger-kernel: residual addition and RMS norm; both sums and norms are outputs.

reference: liger_fused_add_rms_norm.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction

ROWS = 19
WIDTH = 200


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x, r):
        s = x + r
        return s * torch.rsqrt(s.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight, s


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x, r):
        return LigerFusedAddRMSNormFunction.apply(x, r, self.weight, 1e-6, 0.0, "llama", False)


def get_inputs():
    return [torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []
