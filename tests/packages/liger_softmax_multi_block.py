"""liger-kernel: softmax (multi block).

reference: liger_softmax_multi_block.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
from liger_kernel.ops.softmax import LigerSoftmaxFunction

ROWS = 3
WIDTH = 70001


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


class ModelNew(nn.Module):
    def forward(self, x):
        return LigerSoftmaxFunction.apply(x)


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []
