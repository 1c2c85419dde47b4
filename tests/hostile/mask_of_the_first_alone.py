"""The mean of chosen rows by the first batch's mask alone.

reference: ../tasks/masked_mean.py
verdict: Mismatch
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, mask_ptr, out_ptr, length, width, L: tl.constexpr, D: tl.constexpr):
    b = tl.program_id(0)
    n, d = tl.arange(0, L), tl.arange(0, D)
    keep = tl.load(mask_ptr + n, mask=n < length, other=0).to(tl.float32)
    at = (b * length + n[:, None]) * width + d[None, :]
    x = tl.load(x_ptr + at, mask=(n[:, None] < length) & (d[None, :] < width), other=0.0)
    total = tl.sum(x * keep[:, None], 0) / tl.maximum(tl.sum(keep, 0), 1.0)
    tl.store(out_ptr + b * width + d, total, mask=d < width)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        b, length, width = x.shape
        out = torch.empty(b, width, device=x.device, dtype=x.dtype)
        mean_kernel[(b,)](
            x, mask, out, length, width, L=triton.next_power_of_2(length), D=triton.next_power_of_2(width)
        )
        return out
