"""Draws noise of its own inside the kernel where the reference draws with torch.

reference: ../tasks/add_noise.py
verdict: Mismatch
rule: values
why: the same seed must give the same noise; any other noise is an error.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def noisy_relu(x_ptr, out_ptr, n, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n) + 0.1 * tl.randn(seed, i)
    tl.store(out_ptr + i, tl.maximum(y, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        noisy_relu[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), 0, BLOCK=1024)
        return out
