"""A program for each packed sequence: relies on sorted offsets that begin at nought.

reference: ../tasks/varlen_sum.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def varlen_kernel(x_ptr, offsets_ptr, out_ptr, width, ROWS: tl.constexpr, COLS: tl.constexpr):
    s = tl.program_id(0)
    c = tl.arange(0, COLS)
    first, last = tl.load(offsets_ptr + s), tl.load(offsets_ptr + s + 1)
    total = tl.zeros((COLS,), tl.float32)
    for start in range(first, last, ROWS):
        r = start + tl.arange(0, ROWS)
        inside = (r[:, None] < last) & (c[None, :] < width)
        total += tl.sum(tl.load(x_ptr + r[:, None] * width + c[None, :], mask=inside, other=0.0), axis=0)
    tl.store(out_ptr + s * width + c, total, mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, offsets):
        out = torch.empty(offsets.shape[0] - 1, x.shape[1], device=x.device)
        cols = triton.next_power_of_2(x.shape[1])
        varlen_kernel[(offsets.shape[0] - 1,)](x, offsets, out, x.shape[1], ROWS=16, COLS=cols)
        return out
