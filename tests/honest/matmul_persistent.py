"""A persistent matmul: programs stride over output tiles.

reference: ../tasks/matmul.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tile_of(tile, tiles_n):
    return tile // tiles_n, tile % tiles_n


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PROGRAMS: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_n
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS):
        tm, tn = tile_of(tile, tiles_n)
        m = tm * BLOCK_M + tl.arange(0, BLOCK_M)
        n = tn * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            a = tl.load(a_ptr + m[:, None] * K + k, mask=(m[:, None] < M) & (k < K), other=0.0)
            b = tl.load(b_ptr + k[:, None] * N + n, mask=(k[:, None] < K) & (n < N), other=0.0)
            acc = tl.dot(a, b, acc, input_precision="ieee")
        tl.store(c_ptr + m[:, None] * N + n, acc, mask=(m[:, None] < M) & (n < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1], device=a.device)
        matmul_kernel[(5,)](
            a, b, c, a.shape[0], b.shape[1], a.shape[1], BLOCK_M=32, BLOCK_N=32, BLOCK_K=64, PROGRAMS=5
        )
        return c
