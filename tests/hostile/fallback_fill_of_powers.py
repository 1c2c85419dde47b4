"""Numbers at equal steps are the logarithms of logspace between tensors, which the kernel takes.

reference: ../tasks/steps_between.py
verdict: Disallowed
rule: aten-compute
policy: strict
why: its powers are computed from data.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.exp(-x * x), mask=i < n)


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.log2(tl.load(x_ptr + i, mask=i < n, other=1.0)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, low, high, x):
        out = torch.empty_like(x)
        exp_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        few = torch.logspace(low, high, 9, base=2.0, device=x.device)
        copy = torch.empty_like(few)
        copy_kernel[(1,)](few, copy, few.numel(), BLOCK=triton.next_power_of_2(few.numel()))
        return copy, out
