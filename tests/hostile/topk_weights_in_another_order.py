"""Places in the order of the row, weights in descending order.

reference: ../tasks/topk_weights.py
verdict: Mismatch
rule: values
why: each weight belongs to the place next to it.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, v_ptr, i_ptr):
    r = tl.program_id(0)
    c = tl.arange(0, 64)
    x = tl.load(x_ptr + r * 64 + c)
    above = (x[None, :] > x[:, None]) | ((x[None, :] == x[:, None]) & (c[None, :] < c[:, None]))
    rank = tl.sum(above.to(tl.int32), 1)
    place = tl.cumsum((rank < 4).to(tl.int32), 0) - 1
    keep = (rank < 4) & (place < 4)
    e = tl.exp(x - tl.max(x, 0))
    weight = e / tl.sum(tl.where(keep, e, 0.0), 0)
    tl.store(v_ptr + r * 4 + rank, weight, mask=keep)
    tl.store(i_ptr + r * 4 + place, c.to(tl.int64), mask=keep)


class ModelNew(nn.Module):
    def forward(self, x):
        v = x.new_empty(16, 4)
        i = torch.empty(16, 4, dtype=torch.int64, device=x.device)
        k[(16,)](x, v, i)
        return v, i
