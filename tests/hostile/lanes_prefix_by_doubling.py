"""A prefix sum by doubling through memory, without barriers.

reference: ../tasks/row_prefix.py
verdict: Unsafe
rule: missing-barrier
why: lanes read what others have yet to write.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def prefix_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0) * cols
    c = tl.arange(0, BLOCK)
    tl.store(out_ptr + row + c, tl.load(x_ptr + row + c))
    step = 1
    while step < BLOCK:
        own = tl.load(out_ptr + row + c)
        left = tl.load(out_ptr + row + c - step, mask=c >= step, other=0.0)
        tl.store(out_ptr + row + c, own + left)
        step *= 2


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        prefix_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
