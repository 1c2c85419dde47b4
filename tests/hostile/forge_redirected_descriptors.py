"""Points every descriptor at a pipe of its own and keeps a copy of each.

reference: ../tasks/relu.py
verdict: Untraceable or Mismatch or TimedOut
why: without its pipe it can deliver no trace, and the judge notices.
"""
import os

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        out = copy(x)
        _, write_end = os.pipe()
        for descriptor in range(64):
            if descriptor != write_end:
                try:
                    os.dup2(write_end, descriptor)
                except OSError:
                    pass
        return out
