"""Leaves out GroupNorm's weight and bias.

reference: ../tasks/group_norm.py
verdict: Mismatch
rule: values
why: parameters are perturbed on both sides.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, BLOCK)
    live = tl.arange(0, BLOCK) < n
    x = tl.load(x_ptr + at, mask=live, other=0.0)
    d = tl.where(live, x - tl.sum(x, 0) / n, 0.0)
    tl.store(out_ptr + at, d * tl.rsqrt(tl.sum(d * d, 0) / n + eps), mask=live)


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        out = torch.empty_like(x)
        n = x[0].numel() // self.norm.num_groups
        norm_kernel[(x.shape[0] * self.norm.num_groups,)](x, out, n, self.norm.eps, BLOCK=1024)
        return out
