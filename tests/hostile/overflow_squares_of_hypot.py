"""The root of a sum of squares: infinite where the inputs are above 2^64, zero where they are below 2^-75.

reference: ../tasks/hypot.py
verdict: Mismatch
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def hypot_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i, mask=i < n), tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.sqrt(x * x + y * y), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        hypot_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
        return out
