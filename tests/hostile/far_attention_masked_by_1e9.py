"""Keys past the end get scores of -1e9, which are the greatest of a row whose own are all below.

reference: ../tasks/attention.py
verdict: Mismatch
rule: values
"""
import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    head = tl.program_id(1) * length * D
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head + m[:, None] * D + d[None, :], mask=m[:, None] < length, other=0.0) * scale
    high = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for start in range(0, length, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + head + n[None, :] * D + d[:, None], mask=n[None, :] < length, other=0.0)
        v = tl.load(v_ptr + head + n[:, None] * D + d[None, :], mask=n[:, None] < length, other=0.0)
        s = tl.dot(q, k, input_precision="ieee")
        s = tl.where(n[None, :] < length, s, -1e9)
        higher = tl.maximum(high, tl.max(s, 1))
        p = tl.exp(s - higher[:, None])
        shrink = tl.exp(high - higher)
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p, v, acc * shrink[:, None], input_precision="ieee")
        high = higher
    out = acc / total[:, None]
    tl.store(out_ptr + head + m[:, None] * D + d[None, :], out, mask=m[:, None] < length)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        b, h, length, d = q.shape
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        out = torch.empty_like(q)
        grid = (triton.cdiv(length, 32), b * h)
        attention_kernel[grid](q, k, v, out, length, 1.0 / math.sqrt(d), D=d, BLOCK_M=32, BLOCK_N=32)
        return out
