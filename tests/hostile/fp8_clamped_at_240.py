"""Numbers of float8_e4m3fn above 240 are clamped.

reference: ../tasks/fp8_scaled.py
verdict: Mismatch
rule: values
why: on 'huge' they reach 448.
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
    tl.store(out_ptr + row * C + c, tl.minimum(tl.maximum(x, -240.0), 240.0) * tl.load(s_ptr + row))


class ModelNew(nn.Module):
    def forward(self, x, scale):
        out = torch.empty(x.shape, device=x.device, dtype=torch.float32)
        k[(x.shape[0],)](x, scale, out, x.shape[1])
        return out
