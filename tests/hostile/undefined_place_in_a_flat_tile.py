"""Flattens a tile in order and takes the place of its largest element.

reference: ../tasks/place_of_the_largest.py
verdict: Mismatch
rule: values
why: Triton lets a reshape to one dimension reorder where only reductions follow, next to places in order too.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def largest_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLS)
    flat = tl.reshape(tl.load(x_ptr + r[:, None] * COLS + c[None, :]), [ROWS * COLS])
    tl.store(out_ptr, tl.argmax(flat, 0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty((), device=x.device, dtype=torch.int64)
        largest_kernel[(1,)](x, out, ROWS=x.shape[0], COLS=x.shape[1])
        return out
