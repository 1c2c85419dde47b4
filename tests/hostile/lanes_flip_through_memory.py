"""A row is stored and loaded again backwards, by other lanes, at once.

reference: ../tasks/flip.py
verdict: Unsafe
rule: missing-barrier
why: the other lanes need not have stored yet.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flip_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * cols + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at))
    back = tl.program_id(0) * cols + (BLOCK - 1 - tl.arange(0, BLOCK))
    x = tl.load(out_ptr + back)
    tl.store(out_ptr + at, x)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        flip_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
