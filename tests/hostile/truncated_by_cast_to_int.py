"""Scales floats by a kernel; the cast to int32 truncates them.

reference: ../tasks/whole_eighths.py
verdict: Disallowed
rule: aten-share
why: a cast to integers that changes numbers truncates, which is the work.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.minimum(tl.maximum(x * 8, -1000.0), 1000.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out.to(torch.int32)
