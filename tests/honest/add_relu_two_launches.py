"""Two kernels, the second in place on the first one's result.

reference: ../tasks/add_relu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def relu_(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(x_ptr + offsets, tl.maximum(x, 0.0), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        n = x.numel()
        grid = (triton.cdiv(n, BLOCK),)
        out = torch.empty(n, device="cuda", dtype=torch.float32)
        add[grid](x, y, out, n, BLOCK)
        relu_[grid](out, n, BLOCK)
        return out
