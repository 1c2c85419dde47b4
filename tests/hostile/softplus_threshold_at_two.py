"""Softplus that is x above 2.

reference: ../tasks/softplus_less_itself.py
verdict: Mismatch
rule: values
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softplus_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    s = tl.where(x > 2, x, tl.log(1.0 + tl.exp(x)))
    y = tl.where(c < cols, s - x, 0.0)
    tl.store(out_ptr + row * cols + c, y / (tl.sqrt(tl.sum(y * y, 0)) + 1e-6), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softplus_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
