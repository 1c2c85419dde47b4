"""liger-kernel: int8 activations times weights of two bits.

reference: liger_int8_int2_matmul.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
from liger_kernel.ops.experimental.mm_int8int2 import matmul, pack_weights

M = 24
N = 40
K = 1024


class Model(nn.Module):
    def forward(self, a, w):
        return (a.to(torch.int32)[:, :, None] * w.to(torch.int32)[None]).sum(1).to(torch.int32).float()


class ModelNew(nn.Module):
    def forward(self, a, w):
        return matmul(a, pack_weights(w.clone())).float()


def get_inputs():
    return [torch.randint(-20, 20, (M, K), dtype=torch.int8), torch.randint(-1, 2, (K, N), dtype=torch.int8)]


def get_init_inputs():
    return []
