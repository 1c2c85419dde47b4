"""A hundred thousand different kernels, one for each value of a constexpr.

reference: ../tasks/relu.py
verdict: TimedOut or Untraceable
why: front ends take time, and a trace is bounded in kernels.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, SALT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0.0) + 0.0 * SALT, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        for salt in range(100000):
            relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), SALT=salt, BLOCK=1024)
        return out
