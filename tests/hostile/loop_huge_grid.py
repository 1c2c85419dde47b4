"""A grid of 2^31 - 1 times 65535 times 65535 programs, almost all of them idle.

reference: ../tasks/relu.py
verdict: TimedOut or Untraceable or Disallowed or Unsafe
why: even an idle program takes time.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = (i < n) & (tl.program_id(1) == 0) & (tl.program_id(2) == 0)
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=live), 0.0), mask=live)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(2**31 - 1, 65535, 65535)](x, out, x.numel(), BLOCK=1024)
        return out
