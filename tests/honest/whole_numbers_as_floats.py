"""Truncates in a kernel that writes whole numbers as floats: the cast to int32 keeps them.

reference: ../tasks/whole_eighths.py
verdict: Verified
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def truncate_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    x = tl.minimum(tl.maximum(x * 8, -1000.0), 1000.0)
    tl.store(out_ptr + i, tl.where(x < 0, tl.ceil(x), tl.floor(x)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        truncate_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out.to(torch.int32)
