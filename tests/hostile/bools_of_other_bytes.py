"""Writes the byte 255 for true, through a view.

reference: ../tasks/nonzero_flags.py
verdict: Mismatch
rule: values
why: a bool is 0 or 1: of others sums and comparisons make other things.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flag_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.where(x != 0, 255, 0).to(tl.uint8), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape, device=x.device, dtype=torch.bool)
        flag_kernel[(triton.cdiv(x.numel(), 512),)](x, out.view(torch.uint8), x.numel(), BLOCK=512)
        return out
