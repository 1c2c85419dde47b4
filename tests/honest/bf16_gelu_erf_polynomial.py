"""The error function by Abramowitz and Stegun 7.1.26: 1.5e-7.

reference: ../tasks/gelu_exact_bf16.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pointwise_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.float32)
    z = tl.abs(x) * 0.7071067811865476
    t = 1 / (1 + 0.3275911 * z)
    p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = 1 - p * tl.exp(-z * z)
    y = 0.5 * x * (1 + tl.where(x < 0, -erf, erf))
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        pointwise_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
