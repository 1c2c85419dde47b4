"""Addresses are quotients by counts that a mask left unread, on rows that are never stored.

reference: ../tasks/rows_divided_by_counts.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, count_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    count = tl.load(count_ptr + m, mask=m < M)
    i = m[:, None]
    row = i // (count[:, None]).to(tl.int64)
    x = tl.load(x_ptr + row * N + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N))
    tl.store(out_ptr + m[:, None] * N + n[None, :], x, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, x, count):
        m, n = x.shape
        out = torch.empty_like(x)
        k[(triton.cdiv(m, 16),)](x, count, out, m, n, BM=16, BN=128)
        return out
