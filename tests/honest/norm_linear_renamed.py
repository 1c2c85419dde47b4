"""Norm and product in one kernel; the parameters have names of their own, made as the reference makes them.

reference: ../tasks/norm_linear.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_linear_kernel(x_ptr, g_ptr, s_ptr, w_ptr, b_ptr, out_ptr, N, K: tl.constexpr, eps, BLOCK_N: tl.constexpr):
    m = tl.program_id(0)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, K)
    x = tl.load(x_ptr + m * K + k)
    d = x - tl.sum(x, 0) / K
    x = d * tl.rsqrt(tl.sum(d * d, 0) / K + eps) * tl.load(g_ptr + k) + tl.load(s_ptr + k)
    w = tl.load(w_ptr + n[:, None] * K + k[None, :], mask=n[:, None] < N, other=0.0)
    tl.store(out_ptr + m * N + n, tl.sum(w * x[None, :], 1) + tl.load(b_ptr + n, mask=n < N), mask=n < N)


class ModelNew(nn.Module):
    def __init__(self, width, out_features):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width))
        self.scale = nn.Parameter(torch.ones(width))
        self.fc = nn.Linear(width, out_features)

    def forward(self, x):
        (M, K), N = x.shape, self.fc.out_features
        out = torch.empty((M, N), device=x.device, dtype=x.dtype)
        norm_linear_kernel[(M, triton.cdiv(N, 32))](
            x, self.scale, self.shift, self.fc.weight, self.fc.bias, out, N, K, 1e-5, BLOCK_N=32
        )
        return out
