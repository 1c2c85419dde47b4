"""Takes the first of two scores for the lesser; the clamp hides that in all but a few draws.

reference: ../tasks/saturated_scores.py
verdict: Mismatch
"""

import torch
from torch import nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, N)
    w = tl.load(w_ptr + row * N + i)
    first = tl.abs(tl.sum(tl.load(x_ptr + row * N + i) * w, axis=0) / 8)
    other = tl.abs(tl.sum(tl.load(x_ptr + (row + 4) * N + i) * w, axis=0) / 8)
    least = tl.minimum(first, first + other * 0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + row, tl.minimum(least * 40, 1.0, propagate_nan=tl.PropagateNan.ALL))


class ModelNew(nn.Module):
    def forward(self, x, w):
        out = torch.empty(4, dtype=x.dtype, device=x.device)
        kernel[(4,)](x, w, out, N=64)
        return out
