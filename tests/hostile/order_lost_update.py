"""A sum is read by one atomic and written back by another.

reference: ../tasks/total.py
verdict: Unsafe
rule: order-dependent
why: two programs may read the same sum, and one of the rows is lost.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0)
    before = tl.atomic_add(out_ptr, 0.0)
    tl.atomic_xchg(out_ptr, before + s)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(1, device=x.device, dtype=x.dtype)
        total_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
