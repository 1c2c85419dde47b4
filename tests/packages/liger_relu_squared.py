"""liger-kernel: ReLU squared.

reference: liger_relu_squared.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
from liger_kernel.ops.relu_squared import LigerReLUSquaredFunction

ROWS = 18
WIDTH = 130


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x).square()


class ModelNew(nn.Module):
    def forward(self, x):
        return LigerReLUSquaredFunction.apply(x)


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []
