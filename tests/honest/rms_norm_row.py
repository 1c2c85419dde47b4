"""One program a row; the weight read once a program.

reference: ../tasks/rms_norm.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, out_ptr, stride, width, eps: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    mask = c < width
    x = tl.load(x_ptr + row * stride + c, mask=mask, other=0.0)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / width + eps)
    tl.store(out_ptr + row * width + c, x * rstd * tl.load(w_ptr + c, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = 1e-6

    def forward(self, x):
        out = torch.empty(x.shape, device=x.device, dtype=x.dtype)
        block = triton.next_power_of_2(x.shape[1])
        rms_norm_kernel[(x.shape[0],)](x, self.weight, out, x.stride(0), x.shape[1], eps=self.eps, BLOCK=block)
        return out
