"""Assigns torch's answer to its output's .data.

reference: ../tasks/matmul.py
verdict: Disallowed or Untraceable or Mismatch or Unsafe
rule: aten-compute or python-error or not-traceable or values or uninitialized-read or output-structure or output-without-launch
why: the product is recorded; .data makes it no less torch's.
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
    def forward(self, a, b):
        out = copy(torch.zeros(a.shape[0], b.shape[1], device=a.device))
        out.data = torch.mm(a, b)
        return out
