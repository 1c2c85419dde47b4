"""Flattens a tile together with the places of its elements, and takes the place of the largest.

reference: ../tasks/place_of_the_largest.py
verdict: Verified
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def larger(a, i, b, j):
    first = (a > b) | ((a == b) & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)


@triton.jit
def largest_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLS)
    places = r[:, None] * COLS + c[None, :]
    flat = tl.reshape(tl.load(x_ptr + places), [ROWS * COLS])
    _, place = tl.reduce((flat, tl.reshape(places, [ROWS * COLS])), 0, larger)
    tl.store(out_ptr, place.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty((), device=x.device, dtype=torch.int64)
        largest_kernel[(1,)](x, out, ROWS=x.shape[0], COLS=x.shape[1])
        return out
