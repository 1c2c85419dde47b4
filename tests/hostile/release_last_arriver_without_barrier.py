"""Split-K whose last program adds up the tiles of all; the counter is raised before other warps have stored theirs.

reference: ../tasks/matmul.py
verdict: Unsafe
rule: missing-barrier
why: an atomic is one thread's, and its release covers what the others stored only after a barrier.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, parts_ptr, count_ptr, c_ptr, M, N, K, EACH, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    m, n, k = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rows = m * BLOCK + tl.arange(0, BLOCK)
    cols = n * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(k * EACH, min(K, (k + 1) * EACH), BLOCK):
        ks = start + tl.arange(0, BLOCK)
        inside = ks < min(K, (k + 1) * EACH)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & inside[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :], mask=inside[:, None] & (cols[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    at = rows[:, None] * N + cols[None, :]
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(parts_ptr + k * M * N + at, acc, mask=mask)
    done = tl.atomic_add(count_ptr + m * tl.num_programs(1) + n, 1)
    if done == SPLIT - 1:
        total = tl.zeros((BLOCK, BLOCK), tl.float32)
        for other in range(SPLIT):
            total += tl.load(parts_ptr + other * M * N + at, mask=mask, other=0.0)
        tl.store(c_ptr + at, total, mask=mask)


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        block, split = 32, 4
        grid = (triton.cdiv(M, block), triton.cdiv(N, block), split)
        parts = torch.empty((split, M, N), device=a.device, dtype=torch.float32)
        count = torch.zeros(grid[0] * grid[1], device=a.device, dtype=torch.int32)
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        matmul_kernel[grid](a, b, parts, count, c, M, N, K, triton.cdiv(K, split), SPLIT=split, BLOCK=block)
        return c
