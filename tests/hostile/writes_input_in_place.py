"""Computes in place on the input and returns it.

reference: ../tasks/relu.py
verdict: Disallowed
rule: input-written or stale-output
why: the reference leaves its input alone.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        relu_[(triton.cdiv(x.numel(), 1024),)](x, x.numel(), BLOCK=1024)
        return x
