"""The exponential of an operand of 11 bits, in a sum that a clamp hides on all of the task's own inputs.

reference: ../tasks/clamped_exp_sum.py
verdict: Mismatch
rule: values
why: where inputs are wide, half of the outputs are at the clamp's bound, and those between show the error.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    e = tl.exp(-tl.abs(x).to(tl.float16).to(tl.float32))
    tl.store(out_ptr + i, tl.minimum(tl.maximum(0.1 * x + 1.5 * e, -1.0), 1.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        sum_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out
