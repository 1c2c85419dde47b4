"""Numbers of float8_e4m3fn times a factor for each row.

reference: ../tasks/fp8_scaled.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, s_ptr, out_ptr, C: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, C)
    x = tl.load(x_ptr + row * C + c).to(tl.float32)
    tl.store(out_ptr + row * C + c, x * tl.load(s_ptr + row))


class ModelNew(nn.Module):
    def forward(self, x, scale):
        out = torch.empty(x.shape, device=x.device, dtype=torch.float32)
        k[(x.shape[0],)](x, scale, out, x.shape[1])
        return out
