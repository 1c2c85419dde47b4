"""A tile is stored and loaded again transposed, without a barrier.

reference: ../tasks/transpose_square.py
verdict: Unsafe
rule: missing-barrier
why: the transposed element was stored by another lane.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, out_ptr, SIZE: tl.constexpr):
    base = tl.program_id(0) * SIZE * SIZE
    r, c = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tl.store(out_ptr + base + r * SIZE + c, tl.load(x_ptr + base + r * SIZE + c) * 2.0)
    t = tl.load(out_ptr + base + c * SIZE + r)
    tl.store(out_ptr + base + r * SIZE + c, t)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        transpose_kernel[(x.shape[0],)](x, out, SIZE=32)
        return out
