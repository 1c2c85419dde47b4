"""A mean as the average of two averages, by tl.reduce.

reference: ../tasks/row_sums.py
verdict: Mismatch
rule: values
why: numbers count as much as the order makes them.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def average(a, b):
    return (a + b) * 0.5


@triton.jit
def sum_kernel(x_ptr, out_ptr, COLS: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, COLS)
    tl.store(out_ptr + row, tl.reduce(tl.load(x_ptr + row * COLS + c), 0, average) * COLS)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        sum_kernel[(x.shape[0],)](x, out, COLS=x.shape[1])
        return out
