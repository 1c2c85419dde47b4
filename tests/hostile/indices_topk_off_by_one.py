"""Right values, and places one to the right.

reference: ../tasks/topk_ties.py
verdict: Mismatch
rule: values
why: the places point to other values.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def topk_kernel(x_ptr, value_ptr, index_ptr, cols, TOP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=-float("inf"))
    for k in range(TOP):
        high = tl.max(x, 0)
        at = (tl.min(tl.where(x == high, c, BLOCK), 0) + 1) % cols
        tl.store(value_ptr + row * TOP + k, high)
        tl.store(index_ptr + row * TOP + k, at.to(tl.int64))
        x = tl.where(c == tl.min(tl.where(x == high, c, BLOCK), 0), -float("inf"), x)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        values = torch.empty((rows, 6), device=x.device, dtype=x.dtype)
        indices = torch.empty((rows, 6), device=x.device, dtype=torch.int64)
        topk_kernel[(rows,)](x, values, indices, cols, TOP=6, BLOCK=triton.next_power_of_2(cols))
        return values, indices
