"""Scalars are stored one by one and loaded as a tile.

reference: ../tasks/flip.py
verdict: Unsafe
rule: missing-barrier
why: one thread stores the scalars, others load them.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flip_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    base = tl.program_id(0) * cols
    for k in range(BLOCK):
        tl.store(out_ptr + base + k, tl.load(x_ptr + base + BLOCK - 1 - k))
    t = tl.load(out_ptr + base + tl.arange(0, BLOCK))
    tl.store(out_ptr + base + tl.arange(0, BLOCK), t)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        flip_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
