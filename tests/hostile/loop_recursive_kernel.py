"""A jit function that calls itself.

reference: ../tasks/relu.py
verdict: CompileFailed or Untraceable or TimedOut
why: Triton has no recursion.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def deeper(x):
    return deeper(x) + 1.0


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, deeper(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
