"""Lies about every tensor's address; the kernel is wrong.

reference: ../tasks/relu.py
verdict: Mismatch or Untraceable or Disallowed or Unsafe
why: arguments are recorded as views of storages, not as addresses.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch._subclasses.fake_tensor import FakeTensor


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
        FakeTensor.data_ptr = lambda self: 0x7F0000000000
        return copy(x)
