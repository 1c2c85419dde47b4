"""The product of rows as the root of the product of squares, which overflows at half of the exponents.

reference: ../tasks/prod_rows.py
verdict: Mismatch
rule: values
why: the product is a number in every order of multiplying; only the squares leave float32.
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
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=1.0)
    sign = tl.reduce(tl.where(x < 0, -1.0, 1.0), 0, times)
    tl.store(out_ptr + row, sign * tl.sqrt(tl.reduce(x * x, 0, times)))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = x.new_empty(rows)
        product_kernel[(rows,)](x, out, cols, BLOCK=1024)
        return out
