"""Padding of 1e4 is the least of a row that is wholly above it.

reference: ../tasks/min_max.py
verdict: Mismatch
rule: values
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def min_max_kernel(x_ptr, low_ptr, high_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = x_ptr + row * cols + c
    tl.store(low_ptr + row, tl.min(tl.load(x, mask=c < cols, other=1e4), 0))
    tl.store(high_ptr + row, tl.max(tl.load(x, mask=c < cols, other=float("-inf")), 0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = {name: torch.empty(rows, device=x.device, dtype=x.dtype) for name in ("low", "high")}
        min_max_kernel[(rows,)](x, out["low"], out["high"], cols, BLOCK=triton.next_power_of_2(cols))
        return out
