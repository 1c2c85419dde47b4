"""Leaves out the mask of the store.

reference: ../tasks/add_relu.py
verdict: Unsafe
rule: out-of-bounds
why: the last block writes behind the output.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_relu(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + i, mask=i < n, other=0.0) + tl.load(y_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, tl.maximum(total, 0.0))


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        add_relu[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
        return out
