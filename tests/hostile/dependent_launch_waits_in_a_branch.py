"""Waits in the first program alone.

reference: ../tasks/normalize.py
verdict: Disallowed
rule: dependent-launch
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def norm_kernel(x_ptr, norm_ptr, COLS, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    gdc_wait()
    x = tl.load(x_ptr + row * COLS + c, mask=c < COLS, other=0.0)
    gdc_launch_dependents()
    tl.store(norm_ptr + row, tl.maximum(tl.sqrt(tl.sum(x * x, 0)), 1e-12))


@triton.jit
def divide_kernel(x_ptr, norm_ptr, out_ptr, COLS, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    if row == 0:
        gdc_wait()
    x = tl.load(x_ptr + row * COLS + c, mask=c < COLS)
    tl.store(out_ptr + row * COLS + c, x / tl.load(norm_ptr + row), mask=c < COLS)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        norm, out = torch.empty(rows, device=x.device), torch.empty_like(x)
        norm_kernel[(rows,)](x, norm, cols, BLOCK=512, launch_pdl=True)
        divide_kernel[(rows,)](x, norm, out, cols, BLOCK=512, launch_pdl=True)
        return out
