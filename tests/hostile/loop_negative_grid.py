"""A grid with a negative axis, and one too large for 32 bits.

reference: ../tasks/relu.py
verdict: Untraceable or Disallowed or CompileFailed or Unsafe or TimedOut
why: a grid is three numbers from 1 to the hardware's limits.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)


def relu(x):
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(-1,)](x, out, x.numel(), BLOCK=1024)
        relu_kernel[(2**40,)](x, out, x.numel(), BLOCK=1024)
        return out
