"""Reads a tile of windows and sums over its second axis.

reference: ../tasks/avg_pool1d.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def avg_pool_kernel(x_ptr, out_ptr, L, OL, WINDOW: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = i[:, None] * STRIDE + tl.arange(0, WINDOW)[None, :]
    x = tl.load(x_ptr + row * L + at, mask=at < L, other=0.0)
    tl.store(out_ptr + row * OL + i, tl.sum(x, axis=1) / WINDOW, mask=i < OL)


class ModelNew(nn.Module):
    def forward(self, x):
        b, c, length = x.shape
        out_length = (length - 4) // 2 + 1
        out = torch.empty((b, c, out_length), device=x.device, dtype=x.dtype)
        grid = (b * c, triton.cdiv(out_length, 64))
        avg_pool_kernel[grid](x, out, length, out_length, WINDOW=4, STRIDE=2, BLOCK=64)
        return out
