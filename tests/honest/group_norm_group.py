"""One program for each sample and group, two passes over its values.

reference: ../tasks/group_norm.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def group_norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, groups, in_group, area, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    n = in_group * area
    base = pid * n
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + base + i, mask=i < n, other=0.0)
    mean = tl.sum(total, 0) / n
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        d = tl.where(i < n, tl.load(x_ptr + base + i, mask=i < n, other=0.0) - mean, 0.0)
        total += d * d
    rstd = tl.rsqrt(tl.sum(total, 0) / n + eps)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        channel = pid % groups * in_group + i // area
        x = tl.load(x_ptr + base + i, mask=i < n)
        w = tl.load(w_ptr + channel, mask=i < n)
        b = tl.load(b_ptr + channel, mask=i < n)
        tl.store(out_ptr + base + i, (x - mean) * rstd * w + b, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        x = x.contiguous()
        batch, channels, height, width = x.shape
        groups = self.norm.num_groups
        out = torch.empty_like(x)
        group_norm_kernel[(batch * groups,)](
            x, self.norm.weight, self.norm.bias, out, groups, channels // groups, height * width, self.norm.eps,
            BLOCK=512,
        )
        return out
