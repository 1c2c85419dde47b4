"""A factor that is two ulps of float16 too large.

reference: ../tasks/scalars_f16.py
verdict: Mismatch
rule: values
why: two ulps are no rounding of 0.3.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pointwise_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.float32)
    y = (x - 1.702) * 0.3005 + 0.1
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        pointwise_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
