"""A row is loaded and stored back flipped: lanes overwrite what others have yet to load.

reference: ../tasks/flip.py
verdict: Unsafe
rule: missing-barrier
why: a lane may store before another has loaded.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flip_kernel(out_ptr, cols, BLOCK: tl.constexpr):
    row = out_ptr + tl.program_id(0) * cols
    x = tl.load(row + tl.arange(0, BLOCK))
    tl.store(row + (BLOCK - 1 - tl.arange(0, BLOCK)), x)


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.clone()
        flip_kernel[(x.shape[0],)](out, x.shape[1], BLOCK=256)
        return out
