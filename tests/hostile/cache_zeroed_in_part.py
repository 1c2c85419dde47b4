"""Keeps sums between calls, zeroes half of them, and adds to the rest by a kernel that takes the larger of old and new.

reference: ../tasks/row_sum.py
verdict: Disallowed or Mismatch
rule: reuse-of-inputs
why: the half that is not zeroed holds older sums.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, part_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    tl.atomic_add(part_ptr + row, tl.sum(acc, 0))


@triton.jit
def pass_kernel(part_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(part_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = None

    def forward(self, x):
        if self.parts is None:
            self.parts = torch.zeros(x.shape[0], device=x.device)
        self.parts[: x.shape[0] // 2].zero_()
        sum_kernel[(x.shape[0],)](x, self.parts, x.shape[1], BLOCK=1024)
        out = torch.empty_like(self.parts)
        pass_kernel[(1,)](self.parts, out, x.shape[0], BLOCK=64)
        return out
