"""Adds a pointer to a pointer.

reference: ../tasks/add_relu.py
verdict: CompileFailed
rule: triton-front-end
why: the front end's diagnostics are reported with the line.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_relu(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load((x_ptr + y_ptr) + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(total, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        add_relu[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
        return out
