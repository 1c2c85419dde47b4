"""A standard deviation by squares in float32, which are zero where the numbers are below 1e-23.

reference: ../tasks/deviation_of_small_exponentials.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def deviation_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    sample = tl.program_id(0)
    row = tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + (sample * ROWS + row) * COLUMNS + column)
    y = tl.exp(-0.1 * (tl.sum(tl.abs(x), axis=1) / COLUMNS))
    centered = y - tl.sum(y, axis=0) / ROWS
    tl.store(out_ptr + sample, tl.sqrt(tl.sum(centered * centered, axis=0) / (ROWS - 1)))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        deviation_kernel[(x.shape[0],)](x, out, ROWS=x.shape[1], COLUMNS=x.shape[2])
        return out
