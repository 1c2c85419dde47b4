"""Says of every other index that four of them are neighbours.

reference: ../tasks/flip.py
verdict: Unsafe
rule: misaligned
why: a wide load takes the neighbours of the first.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flip_kernel(x_ptr, out_ptr, COLS: tl.constexpr):
    row = tl.program_id(0) * COLS
    i = tl.arange(0, COLS // 2)
    for odd in tl.static_range(2):
        c = tl.max_contiguous(tl.multiple_of(2 * i, 4), 4) + odd
        tl.store(out_ptr + row + COLS - 1 - c, tl.load(x_ptr + row + c))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        flip_kernel[(x.shape[0],)](x, out, COLS=x.shape[1])
        return out
