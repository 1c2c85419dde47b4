"""Equal values count as one among the five largest.

reference: ../tasks/sampled_from_top_five.py
verdict: Mismatch
rule: values
why: values lie on a grid where the chosen places themselves are not used, too.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(l_ptr, u_ptr, t_ptr, out_ptr, p_ptr, V, VP: tl.constexpr, K: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, VP)
    x = tl.load(l_ptr + r * V + c, mask=c < V, other=0.0) / tl.load(t_ptr)
    x = tl.where(c < V, x, -float("inf"))
    rest = x
    left = K
    kth = tl.max(x, 0)
    for _ in range(K):
        top = tl.max(rest, 0)
        kth = tl.where(left > 0, top, kth)
        left -= 1
        rest = tl.where(rest == top, -float("inf"), rest)
    x = tl.where(x < kth, -float("inf"), x)
    e = tl.exp(x - tl.max(x, 0))
    p = e / tl.sum(e, 0)
    tl.store(p_ptr + r * V + c, p, mask=c < V)
    total = tl.cumsum(p, 0)
    u = tl.load(u_ptr + r)
    n = tl.sum(((total < u) & (c < V)).to(tl.int32), 0)
    tl.store(out_ptr + r, tl.minimum(n, V - 1).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, logits, u, temperature):
        n, v = logits.shape
        out = torch.empty(n, dtype=torch.int64, device=logits.device)
        p = torch.empty_like(logits)
        k[(n,)](logits, u, temperature, out, p, v, triton.next_power_of_2(v), 5)
        return out, p
