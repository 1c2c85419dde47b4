"""A product of rows in float32: each lane multiplies every 128th factor, then the lanes' products are multiplied.

reference: ../tasks/prod_rows.py
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
def product_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.full([BLOCK], 1.0, tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        lanes *= tl.load(x_ptr + row * cols + c, mask=c < cols, other=1.0)
    tl.store(out_ptr + row, tl.reduce(lanes, 0, times))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = x.new_empty(rows)
        product_kernel[(rows,)](x, out, cols, BLOCK=128)
        return out
