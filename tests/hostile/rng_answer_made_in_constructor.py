"""Draws the benchmark's inputs in the constructor and works out the answer there; forward copies it.

reference: ../tasks/softmax.py
verdict: Disallowed or Mismatch
rule: constant-output or values
why: inputs are drawn anew for every trial, under unknown seeds.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(42)
        self.answer = torch.softmax(torch.randn(256, 781, device="cuda"), dim=-1)

    def forward(self, x):
        return copy(self.answer)
