"""Begins each sum with the sequence's first row: an empty sequence gets the next one's.

reference: ../tasks/varlen_sum.py
verdict: Mismatch
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, offsets_ptr, out_ptr, WIDTH, BLOCK: tl.constexpr):
    s = tl.program_id(0)
    d = tl.arange(0, BLOCK)
    first, last = tl.load(offsets_ptr + s), tl.load(offsets_ptr + s + 1)
    total = tl.load(x_ptr + first * WIDTH + d, mask=d < WIDTH, other=0.0)
    for row in range(first + 1, last):
        total += tl.load(x_ptr + row * WIDTH + d, mask=d < WIDTH, other=0.0)
    tl.store(out_ptr + s * WIDTH + d, total, mask=d < WIDTH)


class ModelNew(nn.Module):
    def forward(self, x, offsets):
        count = offsets.shape[0] - 1
        out = torch.empty(count, x.shape[1], device=x.device)
        sum_kernel[(count,)](x, offsets, out, x.shape[1], BLOCK=64)
        return out
