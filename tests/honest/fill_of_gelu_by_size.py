"""GELU as half of x + |x| erf(|x|), whose small results cancel.

reference: ../tasks/fill_of_gelu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, kept_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    kept = tl.load(kept_ptr + offsets, mask=mask)
    a = tl.abs(x) * 0.7071067811865476
    e = tl.math.erf(a)
    y = 0.5 * (x + tl.abs(x) * e)
    tl.store(out_ptr + offsets, tl.where(kept, y, -3.4028234663852886e38), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, kept):
        out = torch.empty_like(x)
        gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, kept, out, x.numel(), BLOCK=1024)
        return out
