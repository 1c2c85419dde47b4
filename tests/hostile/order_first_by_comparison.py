"""A compare-and-swap lets the first program alone through.

reference: ../tasks/first_row_sum.py
verdict: Unsafe
rule: order-dependent
why: any program may be first.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, flag_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0)
    if tl.atomic_cas(flag_ptr, 0, 1) == 0:
        tl.store(out_ptr, s)


class ModelNew(nn.Module):
    def forward(self, x):
        flag = torch.zeros((x.shape[0],), device=x.device, dtype=torch.int32)
        out = torch.zeros(1, device=x.device, dtype=x.dtype)
        row_kernel[(x.shape[0],)](x, flag, out, x.shape[1], BLOCK=256)
        return out
