"""Forks a child that leaves the process group and stays behind for a minute.

reference: ../tasks/relu.py
verdict: Mismatch or Untraceable
why: it cannot fork, or dies with the sandbox.
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
        out = copy(x)
        try:
            if os.fork() == 0:
                try:
                    os.setsid()
                    time.sleep(60)
                finally:
                    os._exit(0)
        except OSError:
            pass
        return out
