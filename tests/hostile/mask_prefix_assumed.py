"""Counts the mask, and takes what counts to come first.

reference: ../tasks/masked_mean.py
verdict: Mismatch
rule: values
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, mask_ptr, out_ptr, length, width, ROWS: tl.constexpr, COLS: tl.constexpr):
    b = tl.program_id(0)
    r, c = tl.arange(0, ROWS), tl.arange(0, COLS)
    count = tl.sum((tl.load(mask_ptr + b * length + r, mask=r < length, other=0) != 0).to(tl.int32), axis=0)
    inside = (r[:, None] < count) & (c[None, :] < width)
    x = tl.load(x_ptr + (b * length + r[:, None]) * width + c[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + b * width + c, tl.sum(x, axis=0) / tl.maximum(count.to(tl.float32), 1.0), mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        b, length, width = x.shape
        out = torch.empty(b, width, device=x.device)
        rows, cols = triton.next_power_of_2(length), triton.next_power_of_2(width)
        mean_kernel[(b,)](x, mask, out, length, width, ROWS=rows, COLS=cols)
        return out
