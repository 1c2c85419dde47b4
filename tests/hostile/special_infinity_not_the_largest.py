"""Infinities stay what they are.

reference: ../tasks/nan_to_num_defaults.py
verdict: Mismatch
rule: values
why: an infinity becomes the largest number of its dtype.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)

    tl.store(out_ptr + i, tl.where(x != x, 0.5, x), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
