"""Columns are permuted by a registered table; the kernel has the formula that made it.

reference: ../tasks/columns_by_table.py
verdict: Mismatch
policy: strict
why: a checkpoint may hold another table.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, out_ptr):
    r = tl.program_id(0)
    c = tl.arange(0, 64)
    tl.store(out_ptr + r * 64 + c, tl.load(x_ptr + r * 64 + (c * 5) % 64) * 2)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("order", (torch.arange(64) * 5) % 64)

    def forward(self, x):
        out = torch.empty_like(x)
        k[(16,)](x, out)
        return out
