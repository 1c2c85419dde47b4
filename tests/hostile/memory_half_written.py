"""Writes half of its output and hopes that the other half still holds the reference's answer.

reference: ../tasks/relu.py
verdict: Unsafe or Mismatch
rule: uninitialized-read or values
why: unwritten bytes are found, or are poison.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)


def relu(x):
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        half = x.numel() // 2
        relu_kernel[(triton.cdiv(half, 1024),)](x, out, half, BLOCK=1024)
        return out
