"""Loads a scale of one element in every program.

reference: ../tasks/scaled_tanh.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


from triton.language.extra import libdevice


@triton.jit
def scaled_kernel(x_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, libdevice.tanh(x) * tl.load(scale_ptr), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, scale):
        out = torch.empty_like(x)
        scaled_kernel[(triton.cdiv(x.numel(), 512),)](x, scale, out, x.numel(), BLOCK=512)
        return out
