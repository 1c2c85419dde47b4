"""Several planes a program, summed along the last axis.

reference: ../tasks/global_avg_pool.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, planes, area, PLANES: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0) * PLANES + tl.arange(0, PLANES)
    i = tl.arange(0, BLOCK)
    mask = (p[:, None] < planes) & (i[None, :] < area)
    x = tl.load(x_ptr + p[:, None] * area + i[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + p, tl.sum(x, 1) / area, mask=p < planes)


class ModelNew(nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        out = torch.empty((b, c), device=x.device, dtype=x.dtype)
        mean_kernel[(triton.cdiv(b * c, 8),)](x, out, b * c, h * w, PLANES=8, BLOCK=triton.next_power_of_2(h * w))
        return out
