"""Keeps the exponentials of a softmax in half precision.

reference: ../tasks/softmax.py
verdict: Mismatch
rule: values
why: 11 bits of mantissa are not enough for an fp32 task.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * cols + tl.arange(0, BLOCK)
    live = tl.arange(0, BLOCK) < cols
    x = tl.load(x_ptr + at, mask=live, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0)).to(tl.float16)
    tl.store(out_ptr + at, e / tl.sum(e.to(tl.float32), 0), mask=live)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
