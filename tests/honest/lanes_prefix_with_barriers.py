"""A prefix sum by doubling through memory, with both barriers.

reference: ../tasks/row_prefix.py
verdict: Verified
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
        tl.debug_barrier()
        own = tl.load(out_ptr + row + c)
        left = tl.load(out_ptr + row + c - step, mask=c >= step, other=0.0)
        tl.debug_barrier()
        tl.store(out_ptr + row + c, own + left)
        step *= 2


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        prefix_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
