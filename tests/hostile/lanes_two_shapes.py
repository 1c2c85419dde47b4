"""A tile of two dimensions is stored and loaded as one of another shape, transposed.

reference: ../tasks/flip.py
verdict: Unsafe
rule: missing-barrier
why: the element was stored by another lane.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flip_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    base = tl.program_id(0) * cols
    r, c = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    tl.store(out_ptr + base + r * 16 + c, tl.load(x_ptr + base + r * 16 + c))
    t = tl.load(out_ptr + base + (15 - r) * 16 + (15 - c))
    tl.debug_barrier()
    tl.store(out_ptr + base + r * 16 + c, t)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        flip_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
