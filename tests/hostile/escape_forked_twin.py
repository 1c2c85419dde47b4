"""Forks, and lets both twins go on, so that two traces would arrive.

reference: ../tasks/relu.py
verdict: Mismatch or Untraceable or Malformed
why: it cannot fork, or the pipe carries one trace too many.
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
        try:
            os.fork()
        except OSError:
            pass
        return copy(x)
