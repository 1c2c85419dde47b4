"""Sums a row that is reshaped and put together without an order.

reference: ../tasks/row_sums.py
verdict: Verified
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, COLS: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, COLS // 2)
    x = tl.cat(tl.load(x_ptr + row * COLS + c), tl.load(x_ptr + row * COLS + COLS // 2 + c), can_reorder=True)
    parts = tl.sum(tl.reshape(x, [COLS // 8, 8], can_reorder=True), 1)
    tl.store(out_ptr + row, tl.sum(parts, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        sum_kernel[(x.shape[0],)](x, out, COLS=x.shape[1])
        return out
