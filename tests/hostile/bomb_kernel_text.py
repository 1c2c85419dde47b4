"""One kernel of two hundred thousand operations.

reference: ../tasks/relu.py
verdict: TimedOut or Untraceable or CompileFailed or Disallowed or Verified
why: the parser is bounded; within its bounds the kernel is right, and slow.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    for k in tl.static_range(200000):
        x = tl.maximum(x, -1.0e30 - k)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
