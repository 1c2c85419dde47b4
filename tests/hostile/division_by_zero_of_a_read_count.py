"""Divides by a count that was read, less itself.

reference: ../tasks/divided_by_counts.py
verdict: Unsafe
rule: division-by-zero
why: lanes that are on divide by zero.
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
    tl.store(out_ptr + i, total // (count - count) + total // count, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, total, count):
        out = torch.empty_like(total)
        k[(triton.cdiv(total.numel(), 256),)](total, count, out, total.numel(), B=256)
        return out
