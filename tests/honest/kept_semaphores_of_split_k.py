"""Split-K with semaphores and float32 sums that are made once; the last program of a tile clears both.

reference: ../tasks/matmul.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, sums_ptr, count_ptr, c_ptr, M, N, K, EACH, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
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
    tl.atomic_add(sums_ptr + at, acc, mask=mask)
    tl.debug_barrier()
    semaphore = count_ptr + m * tl.num_programs(1) + n
    if tl.atomic_add(semaphore, 1) == SPLIT - 1:
        tl.store(c_ptr + at, tl.load(sums_ptr + at, mask=mask), mask=mask)
        tl.store(sums_ptr + at, tl.zeros((BLOCK, BLOCK), tl.float32), mask=mask)
        tl.atomic_xchg(semaphore, 0)


class ModelNew(nn.Module):
    kept = {}

    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        block, split = 32, 4
        grid = (triton.cdiv(M, block), triton.cdiv(N, block), split)
        if (M, N) not in self.kept:
            sums = torch.zeros((M, N), device=a.device, dtype=torch.float32)
            self.kept[M, N] = sums, torch.zeros(grid[0] * grid[1], device=a.device, dtype=torch.int32)
        sums, count = self.kept[M, N]
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        matmul_kernel[grid](a, b, sums, count, c, M, N, K, triton.cdiv(K, split), SPLIT=split, BLOCK=block)
        return c
