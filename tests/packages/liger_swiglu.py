"""liger-kernel: SiLU times gate.

reference: liger_swiglu.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from liger_kernel.ops.swiglu import LigerSiLUMulFunction

ROWS = 23
WIDTH = 170


class Model(nn.Module):
    def forward(self, a, b):
        return F.silu(a) * b


class ModelNew(nn.Module):
    def forward(self, a, b):
        return LigerSiLUMulFunction.apply(a, b)


def get_inputs():
    return [torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []
