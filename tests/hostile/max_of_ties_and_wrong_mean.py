"""Its maximum is right, and its mean is one of 32 elements of 33; many maxima are equal zeros.

reference: ../tasks/max_of_middle_ties.py
verdict: Mismatch
"""

import torch
from torch import nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * COLUMNS + i, mask=i < COLUMNS, other=0.0)
    most = tl.max(tl.where(i < COLUMNS, tl.maximum(x - 2, 0.0), 0.0), axis=0)
    mean = tl.sum(tl.where(i < COLUMNS - 1, x, 0.0), axis=0) / COLUMNS
    tl.store(out_ptr + row, most * 2 + mean)


class ModelNew(nn.Module):
    def forward(self, x):
        rows = x.shape[0] * x.shape[1]
        out = torch.empty(x.shape[:2], dtype=x.dtype, device=x.device)
        kernel[(rows,)](x, out, COLUMNS=x.shape[2], BLOCK=64)
        return out
