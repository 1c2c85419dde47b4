"""Rows of a table at given positions are added.

reference: ../tasks/positions_full.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, p_ptr, t_ptr, out_ptr, T, D: tl.constexpr):
    row = tl.program_id(0)
    d = tl.arange(0, D)
    p = tl.load(p_ptr + row)

    tl.store(out_ptr + row * D + d, tl.load(x_ptr + row * D + d) + tl.load(t_ptr + p * D + d))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(64, 32)

    def forward(self, x, positions):
        out = torch.empty_like(x)
        k[(x.shape[0] * x.shape[1],)](x, positions, self.table.weight, out, x.shape[1], x.shape[2])
        return out
