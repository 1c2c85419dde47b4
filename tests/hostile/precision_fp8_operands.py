"""Quantises its operands to fp8 with a scale for each tile.

reference: ../tasks/matmul_bf16.py
verdict: Mismatch
rule: values
why: 3 bits of mantissa are not enough for a bf16 task.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :]).to(tl.float32)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :]).to(tl.float32)
        sa = tl.maximum(tl.max(tl.max(tl.abs(a), 1), 0), 1e-20) / 448.0
        sb = tl.maximum(tl.max(tl.max(tl.abs(b), 1), 0), 1e-20) / 448.0
        acc += tl.dot((a / sa).to(tl.float8e4nv), (b / sb).to(tl.float8e4nv)) * (sa * sb)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16))


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        matmul_kernel[(M // 32, N // 32)](a, b, c, M, N, K, BLOCK=32)
        return c
