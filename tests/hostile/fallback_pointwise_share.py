"""silu by torch, the last multiplication by Triton.

reference: ../tasks/swiglu.py
verdict: Disallowed
rule: aten-share
why: far more than a tenth of the bytes and FLOPs are torch's.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
import torch.nn.functional as F


@triton.jit
def multiply_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(a_ptr + i, mask=i < n) * tl.load(b_ptr + i, mask=i < n)
    tl.store(out_ptr + i, y, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        gate, up = x.chunk(2, dim=-1)
        gate, up = F.silu(gate), up.contiguous()
        out = torch.empty_like(up)
        multiply_kernel[(triton.cdiv(out.numel(), 1024),)](gate, up, out, out.numel(), BLOCK=1024)
        return out
