"""The logsumexp of a row that is masked throughout is minus infinity.

reference: ../tasks/masked_logsumexp.py
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
    y = tl.where(m, x, -float("inf"))
    top = tl.max(y, 0)
    safe = tl.where(top == -float("inf"), 0.0, top)
    r = safe + tl.log(tl.sum(tl.exp(y - safe), 0))
    tl.store(out_ptr + row, r)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        out = torch.empty(x.shape[0], device=x.device)
        k[(x.shape[0],)](x, mask, out, x.shape[1], triton.next_power_of_2(x.shape[1]))
        return out
