"""The tanh formula for the exact GELU, next to the smallest number of float32.

reference: ../tasks/fill_of_gelu.py
verdict: Mismatch
rule: values
why: the formula errs by up to 5e-4 of numbers of order one.
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
    y = x / (1.0 + tl.exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))
    tl.store(out_ptr + offsets, tl.where(kept, y, -3.4028234663852886e38), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, kept):
        out = torch.empty_like(x)
        gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, kept, out, x.numel(), BLOCK=1024)
        return out
