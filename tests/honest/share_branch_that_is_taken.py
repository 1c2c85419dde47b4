"""A flag on the device says which of two formulas the kernel uses; PyTorch makes the factor from one number.

reference: ../tasks/scale_add.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, factor_ptr, flag_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.load(flag_ptr) != 0:
        factor = tl.load(factor_ptr)
        x = tl.load(x_ptr + i, mask=i < n)
        tl.store(out_ptr + i, tl.load(y_ptr + i, mask=i < n) + factor * x, mask=i < n)
    else:
        tl.store(out_ptr + i, tl.load(y_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, alpha):
        super().__init__()
        self.alpha = alpha

    def forward(self, x, y):
        factor = torch.ones(1, device=x.device) * self.alpha
        flag = torch.full((1,), 1, device=x.device, dtype=torch.int32)
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, factor, flag, out, x.numel(), BLOCK=1024)
        return out
