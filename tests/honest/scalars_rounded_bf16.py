"""The exponent and the factor as bf16 holds them, the rest in float32.

reference: ../tasks/scalars_bf16.py
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
    y = tl.exp2(tl.log2(tl.abs(x)) * 2.203125) * 0.69921875
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        pointwise_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
