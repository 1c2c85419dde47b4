"""Loads each length.

reference: ../tasks/padded_lengths.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, lengths_ptr, out_ptr, length, width, ROWS: tl.constexpr, COLS: tl.constexpr):
    b = tl.program_id(0)
    r, c = tl.arange(0, ROWS), tl.arange(0, COLS)
    last = tl.load(lengths_ptr + b)
    inside = (r[:, None] < last) & (c[None, :] < width)
    x = tl.load(x_ptr + (b * length + r[:, None]) * width + c[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + b * width + c, tl.sum(x, axis=0), mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        out = torch.empty(x.shape[0], x.shape[2], device=x.device)
        rows_kernel[(x.shape[0],)](x, lengths, out, x.shape[1], x.shape[2], ROWS=64, COLS=64)
        return out
