"""Averages every second element.

reference: ../tasks/global_avg_pool.py
verdict: Mismatch
rule: values
why: a sample's mean is not the mean.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, area, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK) * 2
    x = tl.load(x_ptr + tl.program_id(0) * area + i, mask=i < area, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x, 0) / (area // 2))


class ModelNew(nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        out = torch.empty((b, c), device=x.device)
        mean_kernel[(b * c,)](x, out, h * w, BLOCK=256)
        return out
