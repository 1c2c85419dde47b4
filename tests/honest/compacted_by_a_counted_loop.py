"""A kernel counts the rows to keep and lists them; the next loops as often as the count says.

reference: ../tasks/compacted.py
verdict: Verified
policy: strict
seconds: 20
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def list_rows(x_ptr, list_ptr, count_ptr, WIDTH, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    i, d = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i[:, None] * WIDTH + d[None, :], mask=(d < WIDTH)[None, :], other=0.0)
    kept = tl.sum(x, 1) > 0
    place = tl.cumsum(kept.to(tl.int32), 0) - 1
    tl.store(list_ptr + place, i.to(tl.int64), mask=kept)
    tl.store(count_ptr, tl.sum(kept.to(tl.int64), 0))


@triton.jit
def copy_rows(x_ptr, list_ptr, count_ptr, out_ptr, WIDTH, BLOCK: tl.constexpr):
    d = tl.arange(0, BLOCK)
    count = tl.load(count_ptr)
    for k in range(0, count):
        row = tl.load(list_ptr + k)
        x = tl.load(x_ptr + row * WIDTH + d, mask=d < WIDTH)
        tl.store(out_ptr + k * WIDTH + d, x, mask=d < WIDTH)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, width = x.shape
        listed = torch.empty(rows, dtype=torch.int64, device=x.device)
        count = torch.empty((), dtype=torch.int64, device=x.device)
        list_rows[(1,)](x, listed, count, width, ROWS=64, BLOCK=64)
        out = torch.zeros_like(x)
        copy_rows[(1,)](x, listed, count, out, width, BLOCK=64)
        return out
