"""Folds the norm's weight and bias into the next layer's, in a kernel, at each call; then norm and product fused.

reference: ../tasks/norm_linear.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fold_kernel(w_ptr, gamma_ptr, beta_ptr, bias_ptr, folded_ptr, shift_ptr, K, BLOCK: tl.constexpr):
    n = tl.program_id(0)
    k = tl.arange(0, BLOCK)
    mask = k < K
    w = tl.load(w_ptr + n * K + k, mask=mask, other=0.0)
    tl.store(folded_ptr + n * K + k, w * tl.load(gamma_ptr + k, mask=mask, other=0.0), mask=mask)
    shift = tl.sum(w * tl.load(beta_ptr + k, mask=mask, other=0.0), 0)
    tl.store(shift_ptr + n, shift + tl.load(bias_ptr + n))


@triton.jit
def norm_linear_kernel(
    x_ptr, w_ptr, shift_ptr, out_ptr, M, N, K, eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
    mean = tl.sum(x, 1) / K
    d = tl.where(k[None, :] < K, x - mean[:, None], 0.0)
    x = d * tl.rsqrt(tl.sum(d * d, 1) / K + eps)[:, None]
    w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
    y = tl.dot(x, w, input_precision="ieee") + tl.load(shift_ptr + n, mask=n < N, other=0.0)[None, :]
    tl.store(out_ptr + m[:, None] * N + n[None, :], y, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, width, out_features):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.proj = nn.Linear(width, out_features)

    def forward(self, x):
        (M, K), N = x.shape, self.proj.out_features
        folded = torch.empty_like(self.proj.weight)
        shift = torch.empty_like(self.proj.bias)
        block_k = triton.next_power_of_2(K)
        fold_kernel[(N,)](
            self.proj.weight, self.norm.weight, self.norm.bias, self.proj.bias, folded, shift, K, BLOCK=block_k
        )
        out = torch.empty((M, N), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 32))
        norm_linear_kernel[grid](
            x, folded, shift, out, M, N, K, self.norm.eps, BLOCK_M=16, BLOCK_N=32, BLOCK_K=block_k
        )
        return out
