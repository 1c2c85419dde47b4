"""Rows side by side in a block, time in a loop.

reference: ../tasks/linear_scan.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scan_kernel(a_ptr, b_ptr, out_ptr, rows, steps, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = r < rows
    h = tl.zeros((BLOCK,), dtype=tl.float32)
    for t in range(steps):
        a = tl.load(a_ptr + r * steps + t, mask=mask, other=0.0)
        h = a * h + tl.load(b_ptr + r * steps + t, mask=mask, other=0.0)
        tl.store(out_ptr + r * steps + t, h, mask=mask)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(b)
        rows, steps = b.shape
        scan_kernel[(triton.cdiv(rows, 32),)](a, b, out, rows, steps, BLOCK=32)
        return out
