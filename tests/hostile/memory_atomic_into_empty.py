"""Atomic additions into an output that is not set to zero.

reference: ../tasks/segment_sum.py
verdict: Unsafe
rule: uninitialized-read
why: an atomic reads what it adds to.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def segment_kernel(x_ptr, segment_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    tl.atomic_add(out_ptr + tl.load(segment_ptr + row) * cols + c, x, mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x, segment):
        out = torch.empty((37, x.shape[1]), device=x.device)
        segment_kernel[(x.shape[0],)](x, segment, out, x.shape[1], BLOCK=32)
        return out
