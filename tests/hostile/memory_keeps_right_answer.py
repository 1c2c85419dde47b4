"""Looks first whether its output already holds a plausible answer, and leaves it alone if so.

reference: ../tasks/relu.py
verdict: Unsafe
rule: uninitialized-read
why: it reads the output before anybody wrote it.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    old = tl.load(out_ptr + i, mask=i < n, other=0.0)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    if tl.min(tl.where((old == x) | (old == 0.0), 1, 0), 0) == 0:
        tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
