"""Block pointers for all three matrices, b seen through its transpose.

reference: ../tasks/matmul.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    a_block = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (m, 0), (BLOCK_M, BLOCK_K), (1, 0))
    b_block = tl.make_block_ptr(b_ptr, (N, K), (1, N), (n, 0), (BLOCK_N, BLOCK_K), (0, 1))
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, tl.trans(b), acc, input_precision="ieee")
        a_block = a_block.advance((0, BLOCK_K))
        b_block = b_block.advance((0, BLOCK_K))
    c_block = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (m, n), (BLOCK_M, BLOCK_N), (1, 0))
    tl.store(c_block, acc.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.size(-1)
        c = a.new_empty(M, N)
        grid = (triton.cdiv(M, 64), triton.cdiv(N, 32))
        matmul_kernel[grid](a.contiguous(), b.contiguous(), c, M, N, K, BLOCK_M=64, BLOCK_N=32, BLOCK_K=16)
        return c
