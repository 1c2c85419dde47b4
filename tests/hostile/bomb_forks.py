"""Forks and forks (bounded here to nine generations, asleep for twenty seconds).

reference: ../tasks/relu.py
verdict: Mismatch or Untraceable or TimedOut
why: it cannot fork, or not often, and all die together.
"""
import os
import time

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
        me = os.getpid()
        try:
            for _ in range(9):
                os.fork()
        except OSError:
            pass
        if os.getpid() != me:
            try:
                time.sleep(20)
            finally:
                os._exit(0)
        return copy(x)
