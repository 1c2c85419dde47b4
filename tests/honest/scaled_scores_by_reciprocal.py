"""A softmax in two kernels: the maximum is taken of quotients, and subtracted from products with reciprocals.

reference: ../tasks/scaled_scores.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def maximum_kernel(x_ptr, width_ptr, scale_ptr, most_ptr, sum_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    width = tl.load(width_ptr + c, mask=c < cols, other=1.0)
    scale = tl.rsqrt(tl.sum(x * x, 0) / cols + 1e-7)
    tl.store(scale_ptr + row, scale)
    scores = x * scale / width
    most = tl.max(tl.where(c < cols, scores, -float("inf")), 0)
    tl.store(most_ptr + row, most)
    tl.store(sum_ptr + row, tl.sum(tl.where(c < cols, tl.exp(scores - most), 0.0), 0))


@triton.jit
def row_kernel(x_ptr, width_ptr, scale_ptr, most_ptr, sum_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    width = tl.load(width_ptr + c, mask=c < cols, other=1.0)
    scores = x * tl.load(scale_ptr + row) * (1.0 / width)
    e = tl.exp(scores - tl.load(most_ptr + row))
    tl.store(out_ptr + row * cols + c, e / tl.load(sum_ptr + row), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x, width):
        rows, cols = x.shape
        out, scale, most, sums = torch.empty_like(x), x.new_empty(rows), x.new_empty(rows), x.new_empty(rows)
        block = triton.next_power_of_2(cols)
        maximum_kernel[(rows,)](x, width, scale, most, sums, cols, BLOCK=block)
        row_kernel[(rows,)](x, width, scale, most, sums, out, cols, BLOCK=block)
        return out
