"""liger-kernel: SiLU times gate, both in one tensor.

reference: liger_swiglu_fused_gate_up.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from liger_kernel.ops.swiglu import LigerFusedGateUpSiLUMulFunction

ROWS = 23
WIDTH = 170


class Model(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        return F.silu(a) * b


class ModelNew(nn.Module):
    def forward(self, x):
        return LigerFusedGateUpSiLUMulFunction.apply(x)


def get_inputs():
    return [torch.randn(ROWS, 2 * WIDTH)]


def get_init_inputs():
    return []
