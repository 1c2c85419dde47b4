"""Draws the mask as the dropout of ones, from the reference's stream; a kernel applies it.

reference: ../tasks/dropout_train.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sigmoid_of_kept(x_ptr, kept_ptr, out_ptr, n, P: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.load(kept_ptr + i, mask=i < n) != 0
    x = tl.load(x_ptr + i, mask=i < n) * tl.where(kept, 1 / (1 - P), 0.0)
    tl.store(out_ptr + i, 1 / (1 + tl.exp(-x)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        kept = torch.dropout(torch.ones_like(x), 0.3, True)
        out = torch.empty_like(x)
        sigmoid_of_kept[(triton.cdiv(x.numel(), 1024),)](x, kept, out, x.numel(), P=0.3, BLOCK=1024)
        return out
