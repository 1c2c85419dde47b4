"""A for loop of 2^62 iterations that do next to nothing.

reference: ../tasks/relu.py
verdict: TimedOut
rule: time-limit
why: finite is not enough.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, bound, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    wasted = x
    for _ in range(bound):
        wasted = wasted * 0.5 + 1.0
    tl.store(out_ptr + i, tl.where(wasted > 1.0e30, x, tl.maximum(x, 0.0)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), 1 << 62, BLOCK=1024)
        return out
