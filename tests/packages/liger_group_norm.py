"""liger-kernel: group norm.

reference: liger_group_norm.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
from liger_kernel.ops.group_norm import LigerGroupNormFunction

BATCH = 3
CHANNELS = 12
GROUPS = 4
LENGTH = 50


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, CHANNELS)

    def forward(self, x):
        return self.norm(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, CHANNELS)

    def forward(self, x):
        return LigerGroupNormFunction.apply(x, self.norm.weight, self.norm.bias, CHANNELS, GROUPS, self.norm.eps)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, LENGTH)]


def get_init_inputs():
    return []
