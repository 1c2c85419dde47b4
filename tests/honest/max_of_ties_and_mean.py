"""The maxima of rectified rows, many of which are equal, and their means, in one kernel.

reference: ../tasks/max_of_middle_ties.py
verdict: Verified
"""

import torch
from torch import nn
import triton
import triton.language as tl


@triton.jit
def larger_of(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def kernel(x_ptr, out_ptr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * COLUMNS + i, mask=i < COLUMNS, other=0.0)
    over = tl.maximum(x - 2, 0.0, propagate_nan=tl.PropagateNan.ALL)
    most = tl.reduce(tl.where(i < COLUMNS, over, 0.0), 0, larger_of)
    tl.store(out_ptr + row, most * 2 + tl.sum(x, axis=0) / COLUMNS)


class ModelNew(nn.Module):
    def forward(self, x):
        rows = x.shape[0] * x.shape[1]
        out = torch.empty(x.shape[:2], dtype=x.dtype, device=x.device)
        kernel[(rows,)](x, out, COLUMNS=x.shape[2], BLOCK=64)
        return out
