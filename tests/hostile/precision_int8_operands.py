"""Quantises both operands to int8 with a scale for each row or column.

reference: ../tasks/matmul_fp16.py
verdict: Mismatch
rule: values
why: 8-bit integers are not enough for an fp16 task.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def quantise_kernel(x_ptr, q_ptr, scale_ptr, length, step, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * step + i * stride
    x = tl.load(x_ptr + at, mask=i < length, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), 0), 1e-12) / 127.0
    tl.store(q_ptr + at, tl.floor(x / scale + 0.5).to(tl.int8), mask=i < length)
    tl.store(scale_ptr + tl.program_id(0), scale)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.int32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        acc += tl.dot(tl.load(a_ptr + m[:, None] * K + k[None, :]), tl.load(b_ptr + k[:, None] * N + n[None, :]))
    y = acc.to(tl.float32) * tl.load(sa_ptr + m)[:, None] * tl.load(sb_ptr + n)[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], y.to(tl.float16))


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        qa, qb = torch.empty_like(a, dtype=torch.int8), torch.empty_like(b, dtype=torch.int8)
        sa, sb = torch.empty(M, device=a.device), torch.empty(N, device=a.device)
        quantise_kernel[(M,)](a, qa, sa, K, K, 1, BLOCK=512)
        quantise_kernel[(N,)](b, qb, sb, K, 1, N, BLOCK=512)
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        matmul_kernel[(M // 32, N // 32)](qa, qb, sa, sb, c, N, K, BLOCK=32)
        return c
