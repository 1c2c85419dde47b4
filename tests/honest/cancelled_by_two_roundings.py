"""A sum minus its first term, which two kernels round in two ways: noise where the reference has zeros.

reference: ../tasks/shares_before.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def softplus(x, TIMES: tl.constexpr):
    y = tl.maximum(3.0 * x, 0.0) + libdevice.log1p(tl.exp(-3.0 * tl.abs(x)))
    return tl.where(x * 3.0 > 20.0, x, y * (1.0 / 3.0) if TIMES else y / 3.0)


@triton.jit
def sum_kernel(x_ptr, sum_ptr, T: tl.constexpr, W: tl.constexpr):
    b = tl.program_id(0)
    c = tl.arange(0, W)
    total = tl.zeros((W,), tl.float32)
    for t in range(T):
        total += softplus(tl.load(x_ptr + (b * T + t) * W + c), True)
        tl.store(sum_ptr + (b * T + t) * W + c, total)


@triton.jit
def norm_kernel(x_ptr, sum_ptr, out_ptr, T: tl.constexpr, W: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, W)
    z = tl.load(sum_ptr + r * W + c) - softplus(tl.load(x_ptr + r * W + c), False)
    y = z / tl.maximum(tl.sqrt(tl.sum(z * z, 0)), 1e-12)
    tl.store(out_ptr + r * W + c, y)


class ModelNew(nn.Module):
    def forward(self, x):
        batch, steps, width = x.shape
        sums, out = torch.empty_like(x), torch.empty_like(x)
        sum_kernel[(batch,)](x, sums, T=steps, W=width)
        norm_kernel[(batch * steps,)](x, sums, out, T=steps, W=width)
        return out
