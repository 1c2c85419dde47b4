"""RMSNorm whose eps is added to the root, not to the mean of squares.

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
    scale = 1.0 / (tl.sqrt_rn(tl.sum(x * x, 0) / width) + eps)
    tl.store(out_ptr + row * width + i, x * scale * tl.load(w_ptr + i, mask=i < width), mask=i < width)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        out = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](x, self.weight, out, x.shape[1], 1e-6, BLOCK=1024)
        return out
