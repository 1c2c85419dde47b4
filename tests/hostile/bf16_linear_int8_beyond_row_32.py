"""A bf16 linear layer whose rows from 32 on are rounded to 7 bits before the product.

reference: ../tasks/linear_bf16.py
verdict: Mismatch
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, out_ptr, n, k, BN: tl.constexpr, K: tl.constexpr):
    m = tl.program_id(0) * 16 + tl.arange(0, 16)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    i = tl.arange(0, K)
    x = tl.load(x_ptr + m[:, None] * k + i[None, :])
    w = tl.load(w_ptr + c[None, :] * k + i[:, None])
    if tl.program_id(0) >= 2:
        step = tl.max(tl.abs(x.to(tl.float32)), 1)[:, None] / 127
        x = ((x / step + 127.5).to(tl.int32) - 127).to(tl.float32) * step
        x = x.to(tl.bfloat16)
    y = tl.dot(x, w) + tl.load(b_ptr + c)[None, :].to(tl.float32)
    tl.store(out_ptr + m[:, None] * n + c[None, :], tl.maximum(y, 0.0).to(tl.bfloat16))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(256, 128).to(torch.bfloat16)

    def forward(self, x):
        w = self.linear.weight
        out = torch.empty(x.shape[0], w.shape[0], device=x.device, dtype=x.dtype)
        linear_kernel[(x.shape[0] // 16, w.shape[0] // 32)](
            x, w, self.linear.bias, out, w.shape[0], w.shape[1], BN=32, K=256
        )
        return out
