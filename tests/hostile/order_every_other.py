"""Odd programs read by an atomic what even ones have added, without waiting.

reference: ../tasks/row_sums.py
verdict: Unsafe
rule: order-dependent
why: the neighbour may come later.
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
    tl.atomic_add(out_ptr + row, s)
    if row % 2 == 1:
        before = tl.atomic_add(out_ptr + row - 1, 0.0)
        tl.atomic_add(out_ptr + row, tl.where(before == 0.0, 1.0, 0.0))


class ModelNew(nn.Module):
    def forward(self, x):
        flag = torch.zeros((x.shape[0],), device=x.device, dtype=torch.int32)
        out = torch.zeros(x.shape[0], device=x.device, dtype=x.dtype)
        row_kernel[(x.shape[0],)](x, flag, out, x.shape[1], BLOCK=256)
        return out
