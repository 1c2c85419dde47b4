"""The slope 0.0102 in place of 0.01.

reference: ../tasks/leaky_slope_bf16.py
verdict: Mismatch
rule: values
why: three ulps of bf16; the rounding of 0.01 is a sixth of one.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pointwise_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = tl.where(x > 0, x, x * 0.0102)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        pointwise_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
