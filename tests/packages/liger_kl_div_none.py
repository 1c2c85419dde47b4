"""liger-kernel: Kullback-Leibler divergence (none).

reference: liger_kl_div_none.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from liger_kernel.ops.kl_div import LigerKLDivLossFunction

ROWS = 15
CLASSES = 211


class Model(nn.Module):
    def forward(self, a, b):
        return F.kl_div(torch.log_softmax(a, -1), torch.softmax(b, -1), reduction="none")


class ModelNew(nn.Module):
    def forward(self, a, b):
        return LigerKLDivLossFunction.apply(torch.log_softmax(a, -1), torch.softmax(b, -1), "none", False, 1e-10)


def get_inputs():
    return [torch.randn(ROWS, CLASSES), torch.randn(ROWS, CLASSES)]


def get_init_inputs():
    return []
