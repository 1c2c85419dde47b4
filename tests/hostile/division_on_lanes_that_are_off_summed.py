"""Quotients of lanes that a mask left unread are part of a sum.

reference: ../tasks/divided_by_counts.py
verdict: Mismatch
rule: values
why: the quotient by what was not read is undefined.
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
    q = total // count
    left = tl.sum(tl.where(i < n, 0, q))
    tl.store(out_ptr + i, q + left, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, total, count):
        out = torch.empty_like(total)
        k[(triton.cdiv(total.numel(), 256),)](total, count, out, total.numel(), B=256)
        return out
