"""Welford's merge as a reduction over each block, merged along the row; distances from the row's first value.

reference: ../tasks/var_rows.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def merge(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    share = tl.where(n == 0.0, 0.0, n_b / n)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def var_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    first = tl.load(x_ptr + row * cols)
    mean, m2, n = 0.0, 0.0, 0.0
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.where(c < cols, tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0) - first, 0.0)
        one = tl.where(c < cols, 1.0, 0.0)
        block_mean, block_m2, block_n = tl.reduce((x, tl.zeros_like(x), one), 0, merge)
        mean, m2, n = merge(mean, m2, n, block_mean, block_m2, block_n)
    tl.store(out_ptr + row, m2 / (n - 1.0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty((x.shape[0], 1), device=x.device, dtype=x.dtype)
        var_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=512)
        return out
