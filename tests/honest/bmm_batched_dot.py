"""Three-dimensional tl.dot: all batches of a tile in one product.

reference: ../tasks/bmm.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bmm_kernel(a_ptr, b_ptr, c_ptr, B, M, N, K, BLOCK_B: tl.constexpr, BLOCK: tl.constexpr):
    b_ = tl.arange(0, BLOCK_B)[:, None, None]
    m = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[None, :, None]
    n = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, None, :]
    acc = tl.zeros((BLOCK_B, BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        ka = start + tl.arange(0, BLOCK)[None, None, :]
        kb = start + tl.arange(0, BLOCK)[None, :, None]
        a = tl.load(a_ptr + (b_ * M + m) * K + ka, mask=(b_ < B) & (m < M) & (ka < K), other=0.0)
        b = tl.load(b_ptr + (b_ * K + kb) * N + n, mask=(b_ < B) & (kb < K) & (n < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + (b_ * M + m) * N + n, acc, mask=(b_ < B) & (m < M) & (n < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        B, M, K = a.shape
        N = b.shape[2]
        c = torch.empty((B, M, N), device=a.device, dtype=a.dtype)
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16))
        bmm_kernel[grid](a, b, c, B, M, N, K, BLOCK_B=triton.next_power_of_2(B), BLOCK=16)
        return c
