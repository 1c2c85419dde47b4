"""Reads in front of the input.

reference: ../tasks/relu.py
verdict: Unsafe
rule: out-of-bounds
why: a negative index lies outside the tensor.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def steal_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr - n + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        steal_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
