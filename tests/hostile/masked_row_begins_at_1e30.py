"""The maximum of a row that is masked throughout is a number instead of minus infinity.

reference: ../tasks/masked_max.py
verdict: Mismatch
rule: values
why: redrawn masks leave rows empty, and minus infinity is what the forward names.
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
    r = tl.max(tl.where(m, x, -1e30), 0)
    tl.store(out_ptr + row, r)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        out = torch.empty(x.shape[0], device=x.device)
        k[(x.shape[0],)](x, mask, out, x.shape[1], triton.next_power_of_2(x.shape[1]))
        return out
