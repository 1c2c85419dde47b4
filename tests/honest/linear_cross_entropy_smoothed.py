"""Logits, soft cap, smoothed loss and the square of the logsumexp in one kernel.

reference: ../tasks/linear_cross_entropy_smoothed.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(h_ptr, w_ptr, y_ptr, loss_ptr, n_ptr, V, D: tl.constexpr, DP: tl.constexpr, BV: tl.constexpr, CAP: tl.constexpr,
      SMOOTH: tl.constexpr, Z: tl.constexpr, IGNORE: tl.constexpr):
    row = tl.program_id(0)
    y = tl.load(y_ptr + row)
    if y == IGNORE:
        tl.store(loss_ptr + row, 0.0)
        tl.store(n_ptr + row, 0.0)
        return
    c = tl.arange(0, DP)
    h = tl.load(h_ptr + row * D + c, mask=c < D, other=0.0)
    m = -float("inf")
    d = 0.0
    total = 0.0
    picked = 0.0
    for v0 in range(0, V, BV):
        v = v0 + tl.arange(0, BV)
        w = tl.load(w_ptr + v[:, None] * D + c[None, :], mask=(v[:, None] < V) & (c[None, :] < D), other=0.0)
        x = tl.sum(w * h[None, :], 1)
        e = tl.exp(-2.0 * tl.abs(x / CAP))
        t = (1.0 - e) / (1.0 + e)
        x = CAP * tl.where(x < 0, -t, t)
        picked += tl.sum(tl.where(v == y, x, 0.0))
        total += tl.sum(tl.where(v < V, x, 0.0))
        x = tl.where(v < V, x, -float("inf"))
        new = tl.maximum(m, tl.max(x, 0))
        d = d * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    lse = m + tl.log(d)
    loss = (1.0 - SMOOTH) * (lse - picked) + SMOOTH * (lse - total / V)
    tl.store(loss_ptr + row, loss + Z * lse * lse)
    tl.store(n_ptr + row, 1.0)


@triton.jit
def mean(loss_ptr, n_ptr, out_ptr, N, B: tl.constexpr):
    i = tl.arange(0, B)
    s = tl.sum(tl.load(loss_ptr + i, mask=i < N, other=0.0))
    n = tl.sum(tl.load(n_ptr + i, mask=i < N, other=0.0))
    tl.store(out_ptr, s / n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.lm_head = nn.Linear(48, 200, bias=False)

    def forward(self, h, y):
        n, d = h.shape
        v = self.lm_head.weight.shape[0]
        loss, count = torch.empty(n, device=h.device), torch.empty(n, device=h.device)
        k[(n,)](h, self.lm_head.weight, y, loss, count, v, d, 64, 64, 30.0, 0.1, 1e-2, -100)
        out = torch.empty((), device=h.device)
        mean[(1,)](loss, count, out, n, triton.next_power_of_2(n))
        return out
