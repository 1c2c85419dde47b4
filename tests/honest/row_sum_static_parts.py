"""A kept workspace that one kernel fills and the next adds up, both in every call; the output is fresh.

reference: ../tasks/row_sum.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def part_kernel(x_ptr, part_ptr, cols, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(part * BLOCK, cols, PARTS * BLOCK):
        c = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    tl.store(part_ptr + row * PARTS + part, tl.sum(acc, 0))


@triton.jit
def sum_kernel(part_ptr, out_ptr, PARTS: tl.constexpr):
    row = tl.program_id(0)
    tl.store(out_ptr + row, tl.sum(tl.load(part_ptr + row * PARTS + tl.arange(0, PARTS)), 0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.empty(1024, 8, device="cuda")

    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        part_kernel[(x.shape[0], 8)](x, self.parts, x.shape[1], PARTS=8, BLOCK=256)
        sum_kernel[(x.shape[0],)](self.parts, out, PARTS=8)
        return out
