"""Autotuned over tile shapes, stages and warps, with a heuristic stacked below it.

reference: ../tasks/matmul.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


def configurations():
    tiles = [(32, 32, 32), (64, 32, 32), (32, 64, 64), (16, 16, 16)]
    return [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_stages=s, num_warps=4)
        for m, n, k in tiles
        for s in (2, 4)
    ]


@triton.autotune(configs=configurations(), key=["M", "N", "K"])
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0})
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, EVEN_K: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        if EVEN_K:
            a = tl.load(a_ptr + m[:, None] * K + start + k[None, :], mask=m[:, None] < M, other=0.0)
            b = tl.load(b_ptr + (start + k[:, None]) * N + n[None, :], mask=n[None, :] < N, other=0.0)
        else:
            ka = start + k
            a = tl.load(a_ptr + m[:, None] * K + ka[None, :], mask=(m[:, None] < M) & (ka[None, :] < K), other=0.0)
            b = tl.load(b_ptr + ka[:, None] * N + n[None, :], mask=(ka[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), (_, N) = a.shape, b.shape
        c = torch.empty(M, N, device=a.device, dtype=torch.float32)
        grid = lambda meta: (triton.cdiv(M, meta["BLOCK_M"]), triton.cdiv(N, meta["BLOCK_N"]))
        matmul_kernel[grid](a, b, c, M, N, K)
        return c
