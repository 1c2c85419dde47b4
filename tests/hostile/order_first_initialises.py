"""The first program clears the sum that the others add to.

reference: ../tasks/total.py
verdict: Unsafe
rule: order-dependent
why: another program may be first.
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
    if row == 0:
        tl.atomic_xchg(out_ptr, 0.0)
    tl.atomic_add(out_ptr, s)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.full((1,), 77.0, device=x.device, dtype=x.dtype)
        total_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
