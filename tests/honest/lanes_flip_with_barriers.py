"""A row is stored and loaded again backwards, with barriers.

reference: ../tasks/flip.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flip_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * cols + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at))
    tl.debug_barrier()
    back = tl.program_id(0) * cols + (BLOCK - 1 - tl.arange(0, BLOCK))
    x = tl.load(out_ptr + back)
    tl.debug_barrier()
    tl.store(out_ptr + at, x)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        flip_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
