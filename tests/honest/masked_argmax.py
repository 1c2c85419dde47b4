"""The place of the largest element that a mask leaves.

reference: ../tasks/masked_argmax.py
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
    r = tl.argmax(tl.where(m, x, -float("inf")), 0).to(tl.int64)
    tl.store(out_ptr + row, r)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        out = torch.empty(x.shape[0], device=x.device, dtype=torch.int64)
        k[(x.shape[0],)](x, mask, out, x.shape[1], triton.next_power_of_2(x.shape[1]))
        return out
