"""liger-kernel: hyper-connections, streams mixed before a layer.

reference: liger_mhc_pre.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
from liger_kernel.ops.mhc import LigerMHCPreFunction

TOKENS = 37
STREAMS = 4
WIDTH = 72


class Model(nn.Module):
    def forward(self, x, h):
        return (x * h[..., None]).sum(-2)


class ModelNew(nn.Module):
    def forward(self, x, h):
        return LigerMHCPreFunction.apply(x, h)


def get_inputs():
    return [torch.randn(TOKENS, STREAMS, WIDTH), torch.rand(TOKENS, STREAMS)]


def get_init_inputs():
    return []
