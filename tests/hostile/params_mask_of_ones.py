"""Ignores a pruning mask that is all ones.

reference: ../tasks/pruned_linear.py
verdict: Mismatch
policy: strict
why: a checkpoint may hold another mask.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def lin(x_ptr, w_ptr, out_ptr, K: tl.constexpr, N: tl.constexpr):
    r = tl.program_id(0)
    k = tl.arange(0, K)
    x = tl.load(x_ptr + r * K + k)
    for n in range(N):
        tl.store(out_ptr + r * N + n, tl.sum(x * tl.load(w_ptr + n * K + k), 0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(24, 32))
        self.register_buffer("m", torch.ones(24, 32))

    def forward(self, x):
        out = x.new_empty(16, 24)
        lin[(16,)](x, self.w, out, K=32, N=24)
        return out
