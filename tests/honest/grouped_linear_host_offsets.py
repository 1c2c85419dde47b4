"""Reads the groups' sizes on the host (.tolist()) and launches once a group, on views.

reference: ../tasks/grouped_linear.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(x_ptr, w_ptr, out_ptr, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, experts, width, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, width, out_features) / width**0.5)

    def forward(self, x, counts):
        _, K, N = self.weight.shape
        out = torch.empty((x.shape[0], N), device=x.device, dtype=x.dtype)
        start = 0
        for expert, rows in enumerate(counts.tolist()):
            if rows > 0:
                grid = (triton.cdiv(rows, 16), triton.cdiv(N, 16))
                part = slice(start, start + rows)
                matmul_kernel[grid](x[part], self.weight[expert], out[part], rows, N, K, BLOCK=16)
            start += rows
        return out
