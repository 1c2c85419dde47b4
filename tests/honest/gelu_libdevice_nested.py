"""GELU through libdevice, two levels of nested jit functions, and a noinline one on scalars.

reference: ../tasks/gelu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def normal_cdf(x):
    return 0.5 * (1.0 + libdevice.erf(x * 0.7071067811865476))


@triton.jit(noinline=True)
def block_start(pid, size, n):
    start = pid * size
    return tl.minimum(start, n)


@triton.jit
def gelu(x):
    return x * normal_cdf(x)


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = block_start(tl.program_id(0), BLOCK, n) + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, gelu(tl.load(x_ptr + offsets, mask=mask, other=0.0)), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        gelu_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out
