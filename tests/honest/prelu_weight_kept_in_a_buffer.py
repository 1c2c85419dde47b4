"""Copies its weight to a buffer of its own in every call.

reference: ../tasks/prelu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def prelu_kernel(x_ptr, w_ptr, out_ptr, n, channels, length, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    w = tl.load(w_ptr + i // length % channels, mask=i < n)
    tl.store(out_ptr + i, tl.where(x >= 0, x, w * x), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.act = nn.PReLU(channels)
        self.register_buffer("work", torch.zeros(2, channels))

    def forward(self, x):
        self.work[1].copy_(self.act.weight.detach())
        w = self.work[1]
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        prelu_kernel[grid](x, w, out, x.numel(), x.shape[1], x.shape[2], BLOCK=1024)
        return out
