"""Rows split over programs; the partial results lie in a workspace that every call uses again.

reference: ../tasks/logsumexp.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_kernel(x_ptr, high_ptr, sum_ptr, cols, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    each = tl.cdiv(cols, SPLIT)
    c = part * each + tl.arange(0, BLOCK)
    mask = (c < cols) & (c < (part + 1) * each)
    x = tl.load(x_ptr + row * cols + c, mask=mask, other=-float("inf"))
    high = tl.max(x, 0)
    tl.store(high_ptr + row * SPLIT + part, high)
    tl.store(sum_ptr + row * SPLIT + part, tl.sum(tl.exp(x - high), 0))


@triton.jit
def combine_kernel(high_ptr, sum_ptr, out_ptr, SPLIT: tl.constexpr):
    row = tl.program_id(0)
    part = tl.arange(0, SPLIT)
    high = tl.load(high_ptr + row * SPLIT + part)
    top = tl.max(high, 0)
    total = tl.sum(tl.load(sum_ptr + row * SPLIT + part) * tl.exp(high - top), 0)
    tl.store(out_ptr + row, top + tl.log(total))


class ModelNew(nn.Module):
    SPLIT = 8

    def __init__(self):
        super().__init__()
        self.workspace = None

    def forward(self, x):
        rows, cols = x.shape
        if self.workspace is None or self.workspace.shape[1] != rows:
            self.workspace = torch.empty(2, rows, self.SPLIT, device=x.device)
        high, total = self.workspace
        out = torch.empty(rows, device=x.device)
        block = triton.next_power_of_2(triton.cdiv(cols, self.SPLIT))
        partial_kernel[(rows, self.SPLIT)](x, high, total, cols, SPLIT=self.SPLIT, BLOCK=block)
        combine_kernel[(rows,)](high, total, out, SPLIT=self.SPLIT)
        return out
