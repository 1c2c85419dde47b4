"""Leaves the last sixteenth of K out and scales the rest up.

reference: ../tasks/matmul_rand_bf16.py
verdict: Mismatch
rule: values
why: a sample of the terms.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for i in range(tl.cdiv(K, BLOCK_K) - 1):
        live = k < K - i * BLOCK_K
        a = tl.load(a_ptr + m[:, None] * K + i * BLOCK_K + k[None, :], mask=(m[:, None] < M) & live[None, :], other=0)
        b = tl.load(b_ptr + (i * BLOCK_K + k[:, None]) * N + n[None, :], mask=live[:, None] & (n[None, :] < N), other=0)
        acc += tl.dot(a, b)
    acc = acc * K / (K - BLOCK_K)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.size(0), b.size(1), device=a.device, dtype=a.dtype)
        grid = (triton.cdiv(a.size(0), 32), triton.cdiv(b.size(1), 32))
        matmul_kernel[grid](a, b, c, a.size(0), b.size(1), a.size(1), BLOCK=32, BLOCK_K=32)
        return c
