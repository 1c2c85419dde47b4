"""x^12 - x^11 as x^11 (x - 1): an infinity where both powers of the reference overflow and their difference is NaN.

reference: ../tasks/powers_subtracted.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def numbers_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < count, other=1.0)
    square = x * x
    fourth = square * square
    y = fourth * fourth * square * x * (x - 1) + x
    tl.store(out_ptr + i, y, mask=i < count)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        numbers_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
