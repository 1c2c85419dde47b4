"""Many programs in the first dimension, and the most in the second.

reference: ../tasks/relu.py
verdict: Verified
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(1) * 2 + tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(2, 65535)](x, out, x.numel(), BLOCK=8)
        return out
