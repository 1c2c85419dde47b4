"""Gives Python numbers among the inputs to the kernel.

reference: ../tasks/scaled_by_arguments.py
verdict: Verified
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, scale, bias, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.sigmoid(x) * scale + bias, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, scale, bias):
        out = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 512),)](x, out, scale, bias, x.numel(), BLOCK=512)
        return out
