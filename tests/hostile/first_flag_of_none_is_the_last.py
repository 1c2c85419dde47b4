"""The first true flag of a row; the last place where there is none.

reference: ../tasks/first_flag.py
verdict: Mismatch
rule: values
why: the first of equal places is zero.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(m_ptr, out_ptr, C, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    m = tl.load(m_ptr + row * C + c, mask=c < C, other=0) != 0
    r = tl.min(tl.where(m, c, C - 1), 0)
    tl.store(out_ptr + row, r.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, mask):
        out = torch.empty(mask.shape[0], device=mask.device, dtype=torch.int64)
        k[(mask.shape[0],)](mask, out, mask.shape[1], triton.next_power_of_2(mask.shape[1]))
        return out
