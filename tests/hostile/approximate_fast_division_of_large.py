"""fast_dividef by more than 2^126, which gives zero.

reference: ../tasks/ratio.py
verdict: Mismatch
rule: values
why: __fdividef delivers 0 for divisors from 2^126 to 2^128.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def map_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    tl.store(out_ptr + i, libdevice.fast_dividef(x * 3.0, tl.abs(x) * 1e37 + 1e38), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        map_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
