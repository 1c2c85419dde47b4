"""Ones, for a reference that gives one whatever its input.

reference: ../tasks/softmax_sum.py
verdict: Verified or Disallowed
rule: constant-output
why: the reference is no different; the task is reported as degenerate.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def one_kernel(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.full((BLOCK,), 1.0, tl.float32), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        one_kernel[(1,)](out, x.shape[0], BLOCK=32)
        return out
