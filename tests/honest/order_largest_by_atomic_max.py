"""The largest of all by an atomic maximum, in any order.

reference: ../tasks/largest.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def largest_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    s = tl.max(tl.abs(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)), 0)
    tl.atomic_max(out_ptr, s)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(1, device=x.device, dtype=x.dtype)
        largest_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
