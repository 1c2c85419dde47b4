"""Leaves out the weight, which is one by default.

reference: ../tasks/rms_norm.py
verdict: Mismatch
rule: values
why: the weight is perturbed.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * width + tl.arange(0, BLOCK)
    live = tl.arange(0, BLOCK) < width
    x = tl.load(x_ptr + at, mask=live, other=0.0)
    tl.store(out_ptr + at, x * tl.rsqrt(tl.sum(x * x, 0) / width + eps), mask=live)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        out = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](x, out, x.shape[1], 1e-6, BLOCK=1024)
        return out
