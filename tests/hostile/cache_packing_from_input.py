"""Packs a weight together with a scale that it took from the first input.

reference: ../tasks/linear_gelu.py
verdict: Disallowed
rule: reuse-of-inputs
why: packing may derive from parameters alone.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, scale_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(scale_ptr, tl.max(tl.abs(tl.load(x_ptr + i, mask=i < n, other=0.0)), 0))


@triton.jit
def linear_gelu(x_ptr, w_ptr, b_ptr, scale_ptr, out_ptr, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    scale = tl.load(scale_ptr)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        acc = tl.dot(x / scale, w * scale, acc, input_precision="ieee")
    acc += tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
    y = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))
    tl.store(out_ptr + m[:, None] * N + n[None, :], y, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = None

    def forward(self, x):
        if self.scale is None:
            self.scale = torch.empty(1, device=x.device)
            scale_kernel[(1,)](x, self.scale, x.numel(), BLOCK=16384)
        (M, K), N = x.shape, self.linear.out_features
        out = torch.empty((M, N), device=x.device)
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
        linear_gelu[grid](x, self.linear.weight, self.linear.bias, self.scale, out, M, N, K, BLOCK=32)
        return out
