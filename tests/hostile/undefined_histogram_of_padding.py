"""Gives lanes behind the end a number beyond the bins, so that nothing counts them.

reference: ../tasks/histogram_of_integers.py
verdict: Mismatch
rule: values
why: a histogram looks at as many bits as the number of bins has, and counts them in a bin.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=64).to(tl.int32)
    tl.atomic_add(out_ptr + tl.arange(0, 64), tl.histogram(x, 64).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(64, device=x.device, dtype=torch.int64)
        count_kernel[(triton.cdiv(x.numel(), 1024) + 1,)](x, out, x.numel(), BLOCK=1024)
        return out
