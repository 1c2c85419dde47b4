"""A for loop whose step is nought.

reference: ../tasks/relu.py
verdict: TimedOut or Unsafe or CompileFailed or Untraceable or Verified
why: a loop that does not advance does not end, or has no meaning.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, step, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    total = x
    for _ in range(0, 16, step):
        total += 1.0
    tl.store(out_ptr + i, tl.where(total > 1.0e30, x, tl.maximum(x, 0.0)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), 0, BLOCK=1024)
        return out
