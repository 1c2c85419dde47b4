"""Thirty scales worked out by torch: fine under mostly, judged under strict.

reference: ../tasks/batch_norm_eval.py
verdict: Disallowed
rule: aten-compute
policy: strict
why: strict allows no ATen computation in forward.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_shift_relu(x_ptr, scale_ptr, shift_ptr, out_ptr, n, channels, area, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    channel = i // area % channels
    x = tl.load(x_ptr + i, mask=i < n)
    y = x * tl.load(scale_ptr + channel, mask=i < n) + tl.load(shift_ptr + channel, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(y, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = nn.BatchNorm2d(channels)
        self.eval()

    def forward(self, x):
        scale = self.bn.weight * torch.rsqrt(self.bn.running_var + self.bn.eps)
        shift = self.bn.bias - self.bn.running_mean * scale
        out = torch.empty_like(x)
        n, area = x.numel(), x.shape[2] * x.shape[3]
        scale_shift_relu[(triton.cdiv(n, 1024),)](x, scale, shift, out, n, x.shape[1], area, BLOCK=1024)
        return out
