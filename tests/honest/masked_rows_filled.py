"""Rows without a flag are filled with minus infinity.

reference: ../tasks/masked_fill_alone.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, m_ptr, out_ptr, C, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(x_ptr + row * C + c, mask=c < C, other=0.0)
    m = tl.load(m_ptr + row * C + c, mask=c < C, other=0) != 0
    any = tl.max(m.to(tl.int32), 0)
    tl.store(out_ptr + row * C + c, tl.where(any > 0, x * 2, -float("inf")), mask=c < C)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        out = torch.empty_like(x)
        k[(x.shape[0],)](x, mask, out, x.shape[1], triton.next_power_of_2(x.shape[1]))
        return out
