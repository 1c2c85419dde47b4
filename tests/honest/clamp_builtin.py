"""tl.clamp with run-time bounds.

reference: ../tasks/clamp.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def clamp_kernel(x_ptr, out_ptr, low, high, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.clamp(2.0 * x, low, high), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        clamp_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, -20.0, 20.0, x.numel(), BLOCK=1024)
        return out
