"""One program a sample and channel, its area in one block.

reference: ../tasks/instance_norm.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def instance_norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, channels, area, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < area
    x = tl.load(x_ptr + pid * area + i, mask=mask, other=0.0)
    mean = tl.sum(x, 0) / area
    d = tl.where(mask, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(d * d, 0) / area + eps)
    w = tl.load(w_ptr + pid % channels)
    b = tl.load(b_ptr + pid % channels)
    tl.store(out_ptr + pid * area + i, d * rstd * w + b, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.InstanceNorm2d(channels, affine=True)

    def forward(self, x):
        b, c, h, w = x.shape
        out = torch.empty_like(x)
        instance_norm_kernel[(b * c,)](
            x, self.norm.weight, self.norm.bias, out, c, h * w, self.norm.eps,
            BLOCK=triton.next_power_of_2(h * w),
        )
        return out
