"""Says that addresses are multiples of what they are, of one and of a tile.

reference: ../tasks/relu_plus.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64) * COLUMNS
    x_row, out_row = tl.multiple_of(x_ptr + row, 8), out_ptr + row
    places = tl.max_contiguous(tl.multiple_of(x_row + c, 8), 2)
    x = tl.load(places, mask=c < COLUMNS)
    tl.store(out_row + c, tl.maximum(x, 0.0) + 1, mask=c < COLUMNS)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(x.shape[0],)](x, out, COLUMNS=x.shape[1], BLOCK=256)
        return out
