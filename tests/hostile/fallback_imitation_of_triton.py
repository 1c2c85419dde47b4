"""Replaces triton.jit, so that a "launch" calls torch.

reference: ../tasks/relu.py
verdict: Disallowed
rule: no-launch
why: a launch is what Triton's front end was given, not what looks like one in the source.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


class Imitation:
    def __init__(self, function):
        self.function = function

    def __getitem__(self, grid):
        return lambda x, out, n, BLOCK: out.copy_(torch.relu(x))


triton.jit = Imitation


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
