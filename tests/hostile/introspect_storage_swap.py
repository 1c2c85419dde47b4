"""Swaps its output's storage for the input's behind the recorder's back.

reference: ../tasks/dropout_eval.py
verdict: Disallowed or Untraceable or Mismatch or Unsafe
why: set_ is an ATen call like any other, and the output is then the input.
"""
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
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.3)
        self.eval()

    def forward(self, x):
        out = copy(x)
        out.set_(x.untyped_storage(), 0, x.shape, x.stride())
        return out
