"""Depthwise: one plane a program, two-dimensional tiles, taps unrolled.

reference: ../tasks/depthwise_conv2d.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def depthwise_kernel(x_ptr, w_ptr, out_ptr, C, H, W, BLOCK_H: tl.constexpr, BLOCK_W: tl.constexpr):
    plane = tl.program_id(0)
    y = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)[:, None]
    x = tl.arange(0, BLOCK_W)[None, :]
    acc = tl.zeros((BLOCK_H, BLOCK_W), dtype=tl.float32)
    for dy in tl.static_range(3):
        for dx in tl.static_range(3):
            yy, xx = y + dy - 1, x + dx - 1
            inside = (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W)
            value = tl.load(x_ptr + plane * H * W + yy * W + xx, mask=inside, other=0.0)
            acc += value * tl.load(w_ptr + plane % C * 9 + dy * 3 + dx)
    tl.store(out_ptr + plane * H * W + y * W + x, acc, mask=(y < H) & (x < W))


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)

    def forward(self, x):
        B, C, H, W = x.shape
        out = torch.empty_like(x)
        depthwise_kernel[(B * C, triton.cdiv(H, 8))](
            x, self.conv.weight, out, C, H, W, BLOCK_H=8, BLOCK_W=triton.next_power_of_2(W)
        )
        return out
