"""Puts values and their places together by tl.cat: what belongs together stays together.

reference: ../tasks/flip.py
verdict: Verified
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flip_kernel(x_ptr, out_ptr, HALF: tl.constexpr):
    row = tl.program_id(0) * 2 * HALF
    i = tl.arange(0, HALF)
    values = tl.cat(tl.load(x_ptr + row + i), tl.load(x_ptr + row + HALF + i), can_reorder=True)
    places = tl.cat(2 * HALF - 1 - i, HALF - 1 - i, can_reorder=True)
    tl.store(out_ptr + row + places, values)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        flip_kernel[(x.shape[0],)](x, out, HALF=x.shape[1] // 2)
        return out
