"""Tokens grouped by expert with torch's integer operators; the kernel takes each expert's product.

reference: ../tasks/routed_linear.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def expert_kernel(x_ptr, w_ptr, order_ptr, start_ptr, out_ptr, K: tl.constexpr, N: tl.constexpr, NB: tl.constexpr, BLOCK: tl.constexpr):
    e = tl.program_id(0)
    first, last = tl.load(start_ptr + e), tl.load(start_ptr + e + 1)
    k, n = tl.arange(0, K), tl.arange(0, NB)
    w = tl.load(w_ptr + e * K * N + k[:, None] * N + n[None, :], mask=n[None, :] < N, other=0.0)
    for at in range(first, last, BLOCK):
        i = at + tl.arange(0, BLOCK)
        token = tl.load(order_ptr + i, mask=i < last, other=0)
        x = tl.load(x_ptr + token[:, None] * K + k[None, :], mask=(i < last)[:, None], other=0.0)
        y = tl.dot(x, w, input_precision="ieee")
        tl.store(out_ptr + token[:, None] * N + n[None, :], y, mask=(i < last)[:, None] & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(64, 4) / 8)
        self.weight = nn.Parameter(torch.randn(4, 64, 48) / 8)

    def forward(self, x, expert):
        order = torch.argsort(expert, stable=True)
        start = torch.zeros(5, dtype=torch.int64, device=x.device)
        start[1:] = torch.bincount(expert, minlength=4).cumsum(0)
        out = torch.empty(x.shape[0], 48, device=x.device)
        expert_kernel[(4,)](x, self.weight, order, start, out, K=64, N=48, NB=64, BLOCK=16)
        return out
