"""Infinities in rows that are masked as a whole, where the reference has NaNs: the mask says so, not overflow.

reference: ../tasks/masked_rows_softmax.py
verdict: Mismatch
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, keep_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    at = tl.program_id(0) * cols + c
    keep = tl.load(keep_ptr + at, mask=c < cols, other=0)
    x = tl.load(x_ptr + at, mask=(c < cols) & (keep != 0), other=-float("inf"))
    most = tl.max(x, 0)
    e = tl.exp(x - most)
    y = e / tl.sum(e, 0)
    y = tl.where(most == -float("inf"), float("inf"), y)
    tl.store(out_ptr + at, y, mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x, keep):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, keep, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
