"""The least of a row that has come to nearly one number, by another formula for tanh.

reference: ../tasks/least_of_saturated.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    e = tl.exp(-2.0 * (x * x + 6.0))
    y = tl.where(c < cols, (1.0 - e) / (1.0 + e), 0.0)
    d = tl.where(c < cols, y - tl.sum(y, 0) / cols, 0.0)
    z = d * tl.rsqrt(tl.sum(d * d, 0) / cols + 1e-5)
    tl.store(out_ptr + row, tl.argmin(tl.where(c < cols, z, float("inf")), 0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device, dtype=torch.int64)
        row_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
