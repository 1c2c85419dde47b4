"""Rows as eight-bit integers with a scale; a row with a NaN has no integers.

reference: ../tasks/quantised_rows.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

from triton.language.extra import libdevice


@triton.jit
def k(x_ptr, q_ptr, s_ptr, D, DP: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, DP)
    x = tl.load(x_ptr + r * D + c, mask=c < D, other=0.0)
    s = tl.maximum(tl.max(tl.abs(x), 0), 1e-10) / 127.0
    q = libdevice.rint(tl.div_rn(x, s))
    q = tl.minimum(tl.maximum(q, -127.0), 127.0)
    tl.store(q_ptr + r * D + c, q.to(tl.int8), mask=c < D)
    tl.store(s_ptr + r, s)


class ModelNew(nn.Module):
    def forward(self, x):
        n, d = x.shape
        q = torch.empty(n, d, dtype=torch.int8, device=x.device)
        s = torch.empty(n, 1, device=x.device)
        k[(n,)](x, q, s, d, triton.next_power_of_2(d))
        return q, s
