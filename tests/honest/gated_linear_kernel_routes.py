"""A kernel chooses each token's expert, torch groups the choices by integer operators, a kernel takes the products.

reference: ../tasks/gated_linear.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def route_kernel(x_ptr, gate_ptr, expert_ptr, K: tl.constexpr, E: tl.constexpr):
    t = tl.program_id(0)
    k, e = tl.arange(0, K), tl.arange(0, E)
    x = tl.load(x_ptr + t * K + k)
    gate = tl.load(gate_ptr + e[:, None] * K + k[None, :])
    gate = tl.extra.libdevice.rint(gate)
    tl.store(expert_ptr + t, tl.argmax(tl.sum(x[None, :] * gate, 1), 0).to(tl.int64))


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
        self.gate = nn.Parameter(torch.randn(4, 64))
        self.weight = nn.Parameter(torch.randn(4, 64, 48) / 8)

    def forward(self, x):
        expert = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        route_kernel[(x.shape[0],)](x, self.gate, expert, K=64, E=4)
        order = torch.argsort(expert, stable=True)
        start = torch.zeros(5, dtype=torch.int64, device=x.device)
        start[1:] = (expert[:, None] == torch.arange(4, device=x.device)).sum(0).cumsum(0)
        out = torch.empty(x.shape[0], 48, device=x.device)
        expert_kernel[(4,)](x, self.weight, order, start, out, K=64, N=48, NB=64, BLOCK=16)
        return out
