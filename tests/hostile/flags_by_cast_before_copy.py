"""Casts integers to bool by PyTorch; the kernel copies the flags.

reference: ../tasks/nonzero_integers.py
verdict: Disallowed
rule: aten-share
why: the comparison is PyTorch's, whether it comes before the kernel or after it.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.to(torch.bool)
        out = torch.empty_like(x)
        copy_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out
