"""The last place of the token that ends a text, not the first.

reference: ../tasks/first_end_token.py
verdict: Mismatch
rule: values
why: of booleans that were cast to numbers the first place counts.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(m_ptr, out_ptr, C, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    m = tl.load(m_ptr + row * C + c, mask=c < C, other=0) == 2
    r = tl.max(tl.where(m, c, 0), 0)
    tl.store(out_ptr + row, r.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, ids):
        out = torch.empty(ids.shape[0], device=ids.device, dtype=torch.int64)
        k[(ids.shape[0],)](ids, out, ids.shape[1], triton.next_power_of_2(ids.shape[1]))
        return out
