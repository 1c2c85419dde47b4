"""Scores, softmax in place on them, product with the values: three kernels and a scores tensor.

reference: ../tasks/attention.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, sbk, sbn, scale, BLOCK: tl.constexpr
):
    batch = tl.program_id(2)
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        a_at = a_ptr + batch * M * K + m[:, None] * K + k[None, :]
        b_at = b_ptr + batch * N * K + k[:, None] * sbk + n[None, :] * sbn
        a = tl.load(a_at, mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_at, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    c_at = c_ptr + batch * M * N + m[:, None] * N + n[None, :]
    tl.store(c_at, acc * scale, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def softmax_kernel(x_ptr, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    at = x_ptr + tl.program_id(0) * cols + c
    x = tl.load(at, mask=c < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(at, e / tl.sum(e, 0), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        b, h, length, d = q.shape
        scores = torch.empty((b * h, length, length), device=q.device, dtype=torch.float32)
        out = torch.empty_like(q)
        t = triton.cdiv(length, 32)
        product_kernel[(t, t, b * h)](q, k, scores, length, length, d, 1, d, d**-0.5, BLOCK=32)
        softmax_kernel[(b * h * length,)](scores, length, BLOCK=triton.next_power_of_2(length))
        product_kernel[(t, triton.cdiv(d, 32), b * h)](scores, v, out, length, d, length, d, 1, 1.0, BLOCK=32)
        return out
