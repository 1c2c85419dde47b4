"""The convolution is torch's, the bias Triton's.

reference: ../tasks/conv2d.py
verdict: Disallowed
rule: aten-compute
why: the contraction is the work; adding a bias is a trifle.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
import torch.nn.functional as F


@triton.jit
def bias_kernel(x_ptr, b_ptr, out_ptr, n, channels, area, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    b = tl.load(b_ptr + i // area % channels, mask=i < n)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + b, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)

    def forward(self, x):
        y = F.conv2d(x, self.conv.weight, None, padding=1)
        out = torch.empty_like(y)
        n, area = y.numel(), y.shape[2] * y.shape[3]
        bias_kernel[(triton.cdiv(n, 1024),)](y, self.conv.bias, out, n, y.shape[1], area, BLOCK=1024)
        return out
