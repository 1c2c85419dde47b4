"""tl.reduce over (value, index) with a combine function that breaks ties to the left.

reference: ../tasks/argmax.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def better(value_a, index_a, value_b, index_b):
    left = (value_a > value_b) | ((value_a == value_b) & (index_a < index_b))
    return tl.where(left, value_a, value_b), tl.where(left, index_a, index_b)


@triton.jit
def argmax_kernel(x_ptr, high_ptr, index_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, BLOCK)
    mask = (r[:, None] < rows) & (c[None, :] < cols)
    x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=mask, other=-float("inf"))
    index = tl.broadcast_to(c[None, :], (ROWS, BLOCK))
    high, where = tl.reduce((x, index), 1, better)
    tl.store(high_ptr + r, high, mask=r < rows)
    tl.store(index_ptr + r, where, mask=r < rows)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        high = x.new_empty(rows)
        index = x.new_empty(rows, dtype=torch.long)
        grid = (triton.cdiv(rows, 2),)
        argmax_kernel[grid](x, high, index, rows, cols, ROWS=2, BLOCK=triton.next_power_of_2(cols))
        return high, index
