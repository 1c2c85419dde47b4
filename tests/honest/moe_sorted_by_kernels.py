"""Tokens are counted and placed by expert in kernels, and products run over each expert's tokens.

reference: ../tasks/moe.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def route(x_ptr, gate_ptr, expert_ptr, weight_ptr, K: tl.constexpr, E: tl.constexpr):
    t = tl.program_id(0)
    k, e = tl.arange(0, K), tl.arange(0, E)
    x = tl.load(x_ptr + t * K + k)
    score = tl.sum(tl.load(gate_ptr + e[:, None] * K + k[None, :]) * x[None, :], 1)
    first = tl.argmax(score, 0)
    best = tl.max(score, 0)
    rest = tl.where(e == first, -float("inf"), score)
    second = tl.argmax(rest, 0)
    share = tl.exp(tl.max(rest, 0) - best)
    tl.store(expert_ptr + 2 * t, first)
    tl.store(expert_ptr + 2 * t + 1, second)
    tl.store(weight_ptr + 2 * t, 1 / (1 + share))
    tl.store(weight_ptr + 2 * t + 1, share / (1 + share))


@triton.jit
def place(expert_ptr, order_ptr, start_ptr, N, BLOCK: tl.constexpr):
    e = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    expert = tl.load(expert_ptr + i, mask=i < N, other=1000)
    start = tl.sum((expert < e).to(tl.int32), 0)
    mine = (expert == e).to(tl.int32)
    at = start + tl.cumsum(mine, 0) - 1
    tl.store(order_ptr + at, i, mask=mine != 0)
    tl.store(start_ptr + e, start)
    tl.store(start_ptr + e + 1 + tl.arange(0, 1), tl.full((1,), N, tl.int32), mask=(e + tl.arange(0, 1)) == tl.num_programs(0) - 1)


@triton.jit
def products(x_ptr, w_ptr, order_ptr, start_ptr, each_ptr, K: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    e = tl.program_id(0)
    first, last = tl.load(start_ptr + e), tl.load(start_ptr + e + 1)
    k, n = tl.arange(0, K), tl.arange(0, N)
    w = tl.load(w_ptr + e * K * N + k[:, None] * N + n[None, :])
    for at in range(first, last, BLOCK):
        i = at + tl.arange(0, BLOCK)
        slot = tl.load(order_ptr + i, mask=i < last, other=0)
        x = tl.load(x_ptr + (slot // 2)[:, None] * K + k[None, :], mask=(i < last)[:, None], other=0.0)
        y = tl.dot(x, w, input_precision="ieee")
        tl.store(each_ptr + slot[:, None] * N + n[None, :], y, mask=(i < last)[:, None])


@triton.jit
def add(each_ptr, weight_ptr, out_ptr, N: tl.constexpr):
    t = tl.program_id(0)
    n = tl.arange(0, N)
    first = tl.load(each_ptr + 2 * t * N + n) * tl.load(weight_ptr + 2 * t)
    second = tl.load(each_ptr + (2 * t + 1) * N + n) * tl.load(weight_ptr + 2 * t + 1)
    tl.store(out_ptr + t * N + n, first + second)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(8, 32))
        self.experts = nn.Parameter(torch.randn(8, 32, 16) / 6)

    def forward(self, x):
        tokens = x.shape[0]
        integers = dict(dtype=torch.int32, device=x.device)
        expert = torch.empty(2 * tokens, **integers)
        weight = torch.empty(2 * tokens, device=x.device)
        route[(tokens,)](x, self.gate, expert, weight, K=32, E=8)
        order, start = torch.empty(2 * tokens, **integers), torch.empty(9, **integers)
        place[(8,)](expert, order, start, 2 * tokens, BLOCK=256)
        each = torch.empty(2 * tokens, 16, device=x.device)
        products[(8,)](x, self.experts, order, start, each, K=32, N=16, BLOCK=16)
        out = torch.empty(tokens, 16, device=x.device)
        add[(tokens,)](each, weight, out, N=16)
        return out
