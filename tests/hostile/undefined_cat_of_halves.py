"""Puts two halves together by tl.cat and stores them in order.

reference: ../tasks/flip.py
verdict: Mismatch
rule: values
why: tl.cat keeps no order: on a GPU each thread keeps its elements of both.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flip_kernel(x_ptr, out_ptr, HALF: tl.constexpr):
    row = tl.program_id(0) * 2 * HALF
    i = tl.arange(0, HALF)
    high = tl.load(x_ptr + row + 2 * HALF - 1 - i)
    low = tl.load(x_ptr + row + HALF - 1 - i)
    tl.store(out_ptr + row + tl.arange(0, 2 * HALF), tl.cat(high, low, can_reorder=True))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        flip_kernel[(x.shape[0],)](x, out, HALF=x.shape[1] // 2)
        return out
