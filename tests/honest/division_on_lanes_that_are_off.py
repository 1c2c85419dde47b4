"""Divides on lanes that a mask left unread, and stores none of them.

reference: ../tasks/divided_by_counts.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(total_ptr, count_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.load(total_ptr + i, mask=i < n)
    count = tl.load(count_ptr + i, mask=i < n)
    q, r = total // count, total % count  # as in C: towards zero
    q = tl.where((r != 0) & ((r < 0) != (count < 0)), q - 1, q)
    tl.store(out_ptr + i, q, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, total, count):
        out = torch.empty_like(total)
        k[(triton.cdiv(total.numel(), 256),)](total, count, out, total.numel(), B=256)
        return out
