"""Two kernels: patches gathered into a workspace, then a matrix product with bias.

reference: ../tasks/conv2d.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def im2col_kernel(x_ptr, cols_ptr, C, H, W, n, BLOCK: tl.constexpr):
    # cols: [batch, channels * 9, height * width]
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    pixel = i % (H * W)
    k = i // (H * W) % (C * 9)
    b = i // (H * W) // (C * 9)
    y = pixel // W + k // 3 % 3 - 1
    x = pixel % W + k % 3 - 1
    inside = (i < n) & (y >= 0) & (y < H) & (x >= 0) & (x < W)
    value = tl.load(x_ptr + ((b * C + k // 9) * H + y) * W + x, mask=inside, other=0.0)
    tl.store(cols_ptr + i, value, mask=i < n)


@triton.jit
def product_kernel(w_ptr, cols_ptr, b_ptr, out_ptr, O, P, K, BLOCK: tl.constexpr):
    batch = tl.program_id(2)
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32) + tl.load(b_ptr + o, mask=o < O, other=0.0)[:, None]
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        w = tl.load(w_ptr + o[:, None] * K + k[None, :], mask=(o[:, None] < O) & (k[None, :] < K), other=0.0)
        cols = cols_ptr + (batch * K + k[:, None]) * P + p[None, :]
        acc = tl.dot(w, tl.load(cols, mask=(k[:, None] < K) & (p[None, :] < P), other=0.0), acc, input_precision="ieee")
    mask = (o[:, None] < O) & (p[None, :] < P)
    tl.store(out_ptr + (batch * O + o[:, None]) * P + p[None, :], acc, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)

    def forward(self, x):
        B, C, H, W = x.shape
        O, P, K = self.conv.out_channels, H * W, C * 9
        cols = torch.empty((B, K, P), device=x.device, dtype=x.dtype)
        out = torch.empty((B, O, H, W), device=x.device, dtype=x.dtype)
        im2col_kernel[(triton.cdiv(cols.numel(), 1024),)](x, cols, C, H, W, cols.numel(), BLOCK=1024)
        grid = (triton.cdiv(O, 32), triton.cdiv(P, 32), B)
        product_kernel[grid](self.conv.weight.view(O, K), cols, self.conv.bias, out, O, P, K, BLOCK=32)
        return out
