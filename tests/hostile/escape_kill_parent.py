"""Kills its parent.

reference: ../tasks/relu.py
verdict: Mismatch or Untraceable
why: it cannot see the judge's processes, let alone signal them.
"""
import os
import signal

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
        parent = os.getppid()
        if parent > 1:
            try:
                os.kill(parent, signal.SIGKILL)
            except OSError:
                pass
        return copy(x)
