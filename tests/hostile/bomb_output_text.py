"""Prints four gigabytes.

reference: ../tasks/relu.py
verdict: Mismatch or Untraceable or TimedOut
why: what it prints is read and dropped, or not read at all; nothing fills up.
"""
import sys

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
        block = "x" * (1 << 20)
        try:
            for _ in range(4096):
                sys.stdout.write(block)
        except OSError:
            pass
        return copy(x)
