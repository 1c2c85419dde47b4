"""Takes the first element less all others by tl.reduce of differences.

reference: ../tasks/row_sums.py
verdict: Mismatch
rule: values
why: a difference does not commute.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def minus(a, b):
    return a - b


@triton.jit
def sum_kernel(x_ptr, out_ptr, COLS: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, COLS)
    x = tl.load(x_ptr + row * COLS + c)
    tl.store(out_ptr + row, tl.reduce(tl.where(c == 0, x, -x), 0, minus))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        sum_kernel[(x.shape[0],)](x, out, COLS=x.shape[1])
        return out
