"""Sums a row in a bf16 accumulator.

reference: ../tasks/row_sum.py
verdict: Mismatch
rule: values
why: the accumulator is coarser than the task's type.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.bfloat16)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + tl.program_id(0) * cols + c, mask=c < cols, other=0.0)
        acc = (acc + x).to(tl.bfloat16)
    tl.store(out_ptr + tl.program_id(0), tl.sum(acc.to(tl.float32), 0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        sum_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
