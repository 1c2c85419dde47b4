"""Asks the garbage collector for a tensor of the right shape that is not the input.

reference: ../tasks/softmax.py
verdict: Mismatch or Disallowed or Untraceable or Unsafe
why: the answer is in no tensor of this process; it does not exist yet.
"""
import gc

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
        for thing in gc.get_objects():
            if isinstance(thing, torch.Tensor) and thing is not x and thing.shape == x.shape:
                return copy(thing)
        return copy(x)
