"""One program a row and side takes an online logsumexp of products that are never stored.

reference: ../tasks/contrastive.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def loss_kernel(a_ptr, b_ptr, scale_ptr, part_ptr, n, N: tl.constexpr, D: tl.constexpr):
    row, side = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, D)
    if side == 0:
        own_ptr, other_ptr = a_ptr, b_ptr
    else:
        own_ptr, other_ptr = b_ptr, a_ptr
    own = tl.load(own_ptr + row * D + d)
    own = own / tl.maximum(tl.sqrt_rn(tl.sum(own * own, 0)), 1e-12) * tl.exp(tl.load(scale_ptr))
    most, total, mine = float("-inf"), 0.0, 0.0
    for start in range(0, n, N):
        j = start + tl.arange(0, N)
        other = tl.load(other_ptr + j[:, None] * D + d[None, :], mask=j[:, None] < n, other=0.0)
        norm = tl.maximum(tl.sqrt_rn(tl.sum(other * other, 1)), 1e-12)
        s = tl.where(j < n, tl.sum(other * own[None, :], 1) / norm, float("-inf"))
        mine += tl.sum(tl.where(j == row, s, 0.0), 0)
        larger = tl.maximum(most, tl.max(s, 0))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(s - larger), 0)
        most = larger
    tl.store(part_ptr + side * n + row, most + tl.log(total) - mine)


@triton.jit
def mean_kernel(part_ptr, out_ptr, count, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(part_ptr + i, mask=i < count, other=0.0), 0) / count)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, a, b):
        n = a.shape[0]
        parts = torch.empty(2 * n, device=a.device)
        loss_kernel[(n, 2)](a, b, self.log_scale, parts, n, N=16, D=a.shape[1])
        out = torch.empty((), device=a.device)
        mean_kernel[(1,)](parts, out, 2 * n, BLOCK=triton.next_power_of_2(2 * n))
        return out
