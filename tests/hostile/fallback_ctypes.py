"""Reads the input through its address with ctypes.

reference: ../tasks/relu.py
verdict: Untraceable
why: the address is synthetic; the read ends the traced process, and only that.
"""
import ctypes

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
        values = ctypes.string_at(x.data_ptr(), 4 * x.numel())
        y = torch.frombuffer(bytearray(values), dtype=torch.float32).reshape(x.shape)
        return copy(y.clamp(min=0).to(x.device))
