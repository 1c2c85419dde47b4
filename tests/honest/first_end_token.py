"""The first place of the token that ends a text.

reference: ../tasks/first_end_token.py
verdict: Verified
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
    r = tl.argmax(m.to(tl.int32), 0)
    tl.store(out_ptr + row, r.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, ids):
        out = torch.empty(ids.shape[0], device=ids.device, dtype=torch.int64)
        k[(ids.shape[0],)](ids, out, ids.shape[1], triton.next_power_of_2(ids.shape[1]))
        return out
