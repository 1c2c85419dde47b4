"""fp8 (e4m3) and back inside the kernel.

reference: ../tasks/fp8_round_trip.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def round_trip_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    x = tl.clamp(x * 4.0, -448.0, 448.0)
    tl.store(out_ptr + i, x.to(tl.float8e4nv).to(tl.float32) * 0.25, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        round_trip_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out
