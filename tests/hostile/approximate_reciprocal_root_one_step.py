"""RMSNorm with the reciprocal root from bits and one step of Newton's method.

reference: ../tasks/rms_norm.py
verdict: Mismatch
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, w_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * width + i, mask=i < width, other=0.0)
    v = tl.sum(x * x, 0) / width + eps
    y = (0x5F3759DF - (v.to(tl.int32, bitcast=True) >> 1)).to(tl.float32, bitcast=True)
    y = y * (1.5 - 0.5 * v * y * y)
    y = y * (1.5 - 0.5 * v * y * y)
    tl.store(out_ptr + row * width + i, x * y * tl.load(w_ptr + i, mask=i < width), mask=i < width)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        out = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](x, self.weight, out, x.shape[1], 1e-6, BLOCK=1024)
        return out
