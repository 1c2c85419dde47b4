"""A tile is cleared and then added to by atomics of other lanes.

reference: ../tasks/flip.py
verdict: Unsafe
rule: missing-barrier
why: an addition may come before the zero.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flip_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    base = tl.program_id(0) * cols
    k = tl.arange(0, BLOCK)
    tl.store(out_ptr + base + k, tl.zeros((BLOCK,), tl.float32))
    tl.atomic_add(out_ptr + base + (BLOCK - 1 - k), tl.load(x_ptr + base + k))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        flip_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
