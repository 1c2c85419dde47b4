"""A slope for each channel, found from the flat index.

reference: ../tasks/prelu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def prelu_kernel(x_ptr, slope_ptr, out_ptr, n, channels, length, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    slope = tl.load(slope_ptr + (offsets // length) % channels, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x >= 0, x, slope * x), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.act = nn.PReLU(channels)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        _, channels, length = x.shape
        grid = (triton.cdiv(x.numel(), 1024),)
        prelu_kernel[grid](x, self.act.weight, out, x.numel(), channels, length, BLOCK=1024)
        return out
