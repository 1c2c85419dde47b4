"""Flattens a tile with can_reorder=True and stores it in order.

reference: ../tasks/flip.py
verdict: Mismatch
rule: values
why: a reshape that may reorder keeps no order.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flip_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    first = tl.program_id(0) * ROWS * COLS
    r, c = tl.arange(0, ROWS), tl.arange(0, COLS)
    tile = tl.load(x_ptr + first + r[:, None] * COLS + (COLS - 1 - c)[None, :])
    tl.store(out_ptr + first + tl.arange(0, ROWS * COLS), tl.ravel(tile, can_reorder=True))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        flip_kernel[(x.shape[0] // 4,)](x, out, ROWS=4, COLS=x.shape[1])
        return out
