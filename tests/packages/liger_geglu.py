"""liger-kernel: GELU (tanh) times gate.

reference: liger_geglu.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from liger_kernel.ops.geglu import LigerGELUMulFunction

ROWS = 23
WIDTH = 170


class Model(nn.Module):
    def forward(self, a, b):
        return F.gelu(a, approximate="tanh") * b


class ModelNew(nn.Module):
    def forward(self, a, b):
        return LigerGELUMulFunction.apply(a, b)


def get_inputs():
    return [torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []
