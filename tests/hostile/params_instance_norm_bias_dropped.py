"""Applies the weight and forgets the bias.

reference: ../tasks/instance_norm.py
verdict: Mismatch
rule: values
why: the bias is nought by default only.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, w_ptr, out_ptr, channels, n, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, BLOCK)
    live = tl.arange(0, BLOCK) < n
    x = tl.load(x_ptr + at, mask=live, other=0.0)
    d = tl.where(live, x - tl.sum(x, 0) / n, 0.0)
    w = tl.load(w_ptr + tl.program_id(0) % channels)
    tl.store(out_ptr + at, d * tl.rsqrt(tl.sum(d * d, 0) / n + eps) * w, mask=live)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.InstanceNorm2d(channels, affine=True)

    def forward(self, x):
        b, c, h, w = x.shape
        out = torch.empty_like(x)
        norm_kernel[(b * c,)](x, self.norm.weight, out, c, h * w, self.norm.eps, BLOCK=512)
        return out
