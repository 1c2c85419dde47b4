"""The count rises before all lanes have added their part.

reference: ../tasks/linear_relu_split.py
verdict: Unsafe
rule: order-dependent
why: atomics of other lanes than the first may come after a release.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, w_ptr, b_ptr, acc_ptr, lock_ptr, out_ptr, M, N, K: tl.constexpr, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    pm, pn, s = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    m, n = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN)
    c = s * (K // SPLIT) + tl.arange(0, K // SPLIT)
    x = tl.load(x_ptr + m[:, None] * K + c[None, :], mask=m[:, None] < M, other=0.0)
    w = tl.load(w_ptr + n[None, :] * K + c[:, None], mask=n[None, :] < N, other=0.0)
    part = tl.dot(x, w, input_precision="ieee")
    inside = (m[:, None] < M) & (n[None, :] < N)
    at = m[:, None] * N + n[None, :]
    tl.atomic_add(acc_ptr + at, part, mask=inside, sem="relaxed")
    arrived = tl.atomic_add(lock_ptr + pm * tl.num_programs(1) + pn, 1, sem="acq_rel")
    if arrived == SPLIT - 1:
        total = tl.atomic_add(acc_ptr + at, 0.0, mask=inside, sem="relaxed")
        total += tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
        tl.store(out_ptr + at, tl.maximum(total, 0.0), mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(128, 40)

    def forward(self, x):
        m, kk = x.shape
        n = self.l.weight.shape[0]
        acc = torch.zeros(m, n, device=x.device)
        lock = torch.zeros(triton.cdiv(m, 16) * triton.cdiv(n, 16), dtype=torch.int32, device=x.device)
        out = torch.empty(m, n, device=x.device)
        k[(triton.cdiv(m, 16), triton.cdiv(n, 16), 4)](x, self.l.weight, self.l.bias, acc, lock, out, m, n, kk, 4, 16, 16)
        return out
