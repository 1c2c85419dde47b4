"""Leaves out the mask of a load; the garbage is masked out of the store, so that the values are right.

reference: ../tasks/add_relu.py
verdict: Unsafe
rule: out-of-bounds
why: a load outside its tensor is a fault, used or not.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_relu(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + i) + tl.load(y_ptr + i)
    tl.store(out_ptr + i, tl.maximum(total, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        add_relu[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
        return out
