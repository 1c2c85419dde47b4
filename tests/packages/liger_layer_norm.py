"""liger-kernel: layer norm.

reference: liger_layer_norm.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
from liger_kernel.ops.layer_norm import LigerLayerNormFunction

ROWS = 27
WIDTH = 230


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        return self.norm(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        return LigerLayerNormFunction.apply(x, self.norm.weight, self.norm.bias, self.norm.eps)


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []
