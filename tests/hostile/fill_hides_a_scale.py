"""Scores are 4 % too large, under a mask of -1e9.

reference: ../tasks/causal_mask.py
verdict: Mismatch
rule: values
why: small numbers among much larger ones have a scale of their own.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mask_kernel(x_ptr, out_ptr, n, length, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, col = i // length % length, i % length
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.where(col > row, -1e9, x * 0.13), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, scores):
        out = torch.empty_like(scores)
        n = scores.numel()
        mask_kernel[(triton.cdiv(n, 1024),)](scores, out, n, scores.shape[-1], BLOCK=1024)
        return out
