"""Passes a tuple of tensors to the kernel and walks it with tl.static_range.

reference: ../tasks/add_relu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_relu(sources, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in tl.static_range(len(sources)):
        total += tl.load(sources[i] + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, tl.maximum(total, 0.0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        add_relu[(triton.cdiv(x.numel(), 1024),)]((x, y), out, x.numel(), BLOCK=1024)
        return out
