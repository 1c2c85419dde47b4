"""Rows are zero beyond their lengths.

reference: ../tasks/sorted_lengths.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, l_ptr, out_ptr, T: tl.constexpr):
    b = tl.program_id(0)
    t = tl.arange(0, T)
    n = tl.load(l_ptr + b)
    tl.store(out_ptr + b * T + t, tl.where(t < n, tl.load(x_ptr + b * T + t), 0.0))


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        out = torch.empty_like(x)
        k[(x.shape[0],)](x, lengths, out, x.shape[1])
        return out
