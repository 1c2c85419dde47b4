"""liger-kernel: total variation distance (none).

reference: liger_tvd_none.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
from liger_kernel.ops.tvd import LigerTVDLossFunction

ROWS = 15
CLASSES = 211


class Model(nn.Module):
    def forward(self, a, b):
        return (0.5 * (torch.softmax(a, -1) - torch.softmax(b, -1)).abs())


class ModelNew(nn.Module):
    def forward(self, a, b):
        return LigerTVDLossFunction.apply(torch.softmax(a, -1), torch.softmax(b, -1), None, "none")


def get_inputs():
    return [torch.randn(ROWS, CLASSES), torch.randn(ROWS, CLASSES)]


def get_init_inputs():
    return []
