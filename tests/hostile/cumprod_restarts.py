"""A running product that gives NaN once its value is below 1e-30, as if factors had overflowed on the way.

reference: ../tasks/cumprod_rows.py
verdict: Mismatch
rule: values
why: no run of the factors overflows: in every order the product is a small number or zero.
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
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=1.0)
    product = tl.associative_scan(x, 0, times)
    product = tl.where((c > 2000) & (tl.abs(product) < 1e-30), float("nan"), product)
    tl.store(out_ptr + row * cols + c, product, mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty_like(x)
        scan_kernel[(rows,)](x, out, cols, BLOCK=4096)
        return out
