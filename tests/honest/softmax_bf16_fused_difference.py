"""A softmax of bf16 rows that scales and subtracts the maximum in one operation, as a GPU's compiler does.

reference: ../tasks/softmax_bf16.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    at = tl.program_id(0) * cols + c
    x = tl.load(x_ptr + at, mask=c < cols, other=-float("inf")).to(tl.float32)
    scale = tl.full((BLOCK,), 1.4426950408889634, tl.float32)
    high = tl.max(x * scale, 0)
    e = tl.exp2(tl.fma(x, scale, tl.zeros_like(x) - high))
    tl.store(out_ptr + at, (e / tl.sum(e, 0)).to(tl.bfloat16), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
