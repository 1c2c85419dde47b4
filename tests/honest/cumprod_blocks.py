"""A running product in float32, block by block: runs of factors overflow or underflow where one pass does not.

reference: ../tasks/cumprod_rows.py
verdict: Verified
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def times(a, b):
    return a * b


@triton.jit
def scan_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    before = tl.full([], 1.0, tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=1.0)
        tl.store(out_ptr + row * cols + c, before * tl.associative_scan(x, 0, times), mask=c < cols)
        before *= tl.reduce(x, 0, times)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty_like(x)
        scan_kernel[(rows,)](x, out, cols, BLOCK=512)
        return out
