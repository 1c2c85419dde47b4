"""The codes are shifted out of their integers in registers, and scaled before the product.

reference: ../tasks/four_bit_linear.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_kernel(x_ptr, w_ptr, s_ptr, z_ptr, out_ptr, M, N, K, groups, G: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for g in range(groups):
        k = g * G + tl.arange(0, G)
        words = tl.load(w_ptr + n[None, :] * (K // 8) + k[:, None] // 8, mask=n[None, :] < N, other=0)
        codes = (words >> ((k % 8) * 4)[:, None]) & 0xF
        s = tl.load(s_ptr + n * groups + g, mask=n < N, other=0.0)
        z = tl.load(z_ptr + n * groups + g, mask=n < N, other=0.0)
        w = (codes.to(tl.float32) - z[None, :]) * s[None, :]
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=m[:, None] < M, other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, x, packed, scales, zeros):
        (M, K), N, groups = x.shape, packed.shape[0], scales.shape[1]
        out = torch.empty(M, N, device=x.device, dtype=x.dtype)
        linear_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 32))](
            x, packed, scales, zeros, out, M, N, K, groups, G=K // groups, BM=16, BN=32
        )
        return out
