"""Loads the mask, and keeps to it when it is false everywhere.

reference: ../tasks/masked_mean.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, mask_ptr, out_ptr, length, width, ROWS: tl.constexpr, COLS: tl.constexpr):
    b = tl.program_id(0)
    r, c = tl.arange(0, ROWS), tl.arange(0, COLS)
    chosen = (r < length) & (tl.load(mask_ptr + b * length + r, mask=r < length, other=0) != 0)
    inside = (r[:, None] < length) & (c[None, :] < width)
    x = tl.load(x_ptr + (b * length + r[:, None]) * width + c[None, :], mask=inside, other=0.0)
    total = tl.sum(tl.where(chosen[:, None], x, 0.0), axis=0)
    count = tl.maximum(tl.sum(chosen.to(tl.float32), axis=0), 1.0)
    tl.store(out_ptr + b * width + c, total / count, mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        b, length, width = x.shape
        out = torch.empty(b, width, device=x.device)
        rows, cols = triton.next_power_of_2(length), triton.next_power_of_2(width)
        mean_kernel[(b,)](x, mask, out, length, width, ROWS=rows, COLS=cols)
        return out
