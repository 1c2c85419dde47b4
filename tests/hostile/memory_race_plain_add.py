"""Split-K with plain loads and stores instead of atomics.

reference: ../tasks/row_sum.py
verdict: Unsafe
rule: race
why: programs read and write the same element in no order.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0)
    tl.store(out_ptr + row, tl.load(out_ptr + row) + part)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(x.shape[0], device=x.device)
        sum_kernel[(x.shape[0], triton.cdiv(x.shape[1], 2048))](x, out, x.shape[1], BLOCK=2048)
        return out
