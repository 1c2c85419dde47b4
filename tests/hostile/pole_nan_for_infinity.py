"""NaN for the logarithm of zero: a pole is no overflow.

reference: ../tasks/log_of_sizes.py
verdict: Mismatch
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def numbers_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < count, other=1.0)
    y = tl.where(x == 0, float('nan'), tl.log(tl.abs(x)) * 0.5)
    tl.store(out_ptr + i, y, mask=i < count)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        numbers_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
