"""The learned scale is not clamped, which no sample of it shows.

reference: ../tasks/logit_scale_clamped.py
verdict: Mismatch
rule: values
why: a scalar that is learned becomes larger.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def k(x_ptr, y_ptr, s_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, NB: tl.constexpr, K: tl.constexpr):
    m, n, c = tl.arange(0, M), tl.arange(0, NB), tl.arange(0, K)
    x = tl.load(x_ptr + m[:, None] * K + c[None, :])
    y = tl.load(y_ptr + n[:, None] * K + c[None, :], mask=n[:, None] < N, other=0.0)
    x = x / tl.maximum(tl.sqrt(tl.sum(x * x, 1)), 1e-12)[:, None]
    y = y / tl.maximum(tl.sqrt(tl.sum(y * y, 1)), 1e-12)[:, None]
    out = tl.exp(tl.load(s_ptr)) * tl.dot(x, tl.trans(y), input_precision="ieee")
    tl.store(out_ptr + m[:, None] * N + n[None, :], out, mask=n[None, :] < N)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(2.6593))

    def forward(self, x, y):
        out = torch.empty(x.shape[0], y.shape[0], device=x.device)
        k[(1,)](x, y, self.logit_scale, out, M=x.shape[0], N=y.shape[0], NB=64, K=x.shape[1])
        return out
