"""Split-K into a workspace, and a second kernel that adds the parts in a fixed order.

reference: ../tasks/matmul_large_k.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_kernel(a_ptr, b_ptr, parts_ptr, M, N, K, EACH, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    part = tl.program_id(2)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(part * EACH, min(K, (part + 1) * EACH), BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    mask = (m[:, None] < M) & (n[None, :] < N)
    tl.store(parts_ptr + part * M * N + m[:, None] * N + n[None, :], acc, mask=mask)


@triton.jit
def add_parts_kernel(parts_ptr, c_ptr, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in tl.static_range(PARTS):
        total += tl.load(parts_ptr + part * n + offsets, mask=offsets < n, other=0.0)
    tl.store(c_ptr + offsets, total, mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, a, b, parts=6):
        (M, K), N = a.shape, b.shape[1]
        each = triton.cdiv(triton.cdiv(K, parts), 64) * 64
        workspace = torch.empty((parts, M, N), device=a.device, dtype=torch.float32)
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 32), parts)
        partial_kernel[grid](a, b, workspace, M, N, K, each, BLOCK=32, BLOCK_K=64)
        add_parts_kernel[(triton.cdiv(M * N, 512),)](workspace, c, M * N, PARTS=parts, BLOCK=512)
        return c
