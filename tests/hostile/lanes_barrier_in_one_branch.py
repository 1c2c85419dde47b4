"""The barrier is in a branch that some programs do not take.

reference: ../tasks/flip.py
verdict: Unsafe
rule: missing-barrier
why: programs 3, 10, 17, ... have none.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flip_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    base = tl.program_id(0) * cols
    k = tl.arange(0, BLOCK)
    tl.store(out_ptr + base + k, tl.load(x_ptr + base + k))
    if tl.program_id(0) % 7 != 3:
        tl.debug_barrier()
    t = tl.load(out_ptr + base + BLOCK - 1 - k)
    tl.debug_barrier()
    tl.store(out_ptr + base + k, t)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        flip_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
