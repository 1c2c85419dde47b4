"""More programs in the third dimension than CUDA launches, most of them idle.

reference: ../tasks/relu.py
verdict: Untraceable
rule: python-error
why: such a launch is an invalid argument.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(2) * 2 + tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(2, 1, 70000)](x, out, x.numel(), BLOCK=4)
        return out
