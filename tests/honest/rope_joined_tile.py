"""A tile of rows; the halves taken apart and put together with reshape, split and join; tl.sin and tl.cos.

reference: ../tasks/rope.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rope_kernel(x_ptr, angle_ptr, out_ptr, rows, length, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, WIDTH)[None, :]
    half = tl.arange(0, WIDTH // 2)[None, :]
    x = tl.load(x_ptr + r * WIDTH + c, mask=r < rows, other=0.0)
    angle = tl.load(angle_ptr + r % length * (WIDTH // 2) + half, mask=r < rows, other=0.0)
    a, b = tl.split(tl.trans(tl.reshape(x, (ROWS, 2, WIDTH // 2)), (0, 2, 1)))
    cos, sin = tl.cos(angle), tl.sin(angle)
    y = tl.join(a * cos - b * sin, b * cos + a * sin)
    y = tl.reshape(tl.trans(y, (0, 2, 1)), (ROWS, WIDTH))
    tl.store(out_ptr + r * WIDTH + c, y, mask=r < rows)


class ModelNew(nn.Module):
    def forward(self, x, angle):
        out = torch.empty_like(x)
        rows = x.numel() // x.shape[-1]
        rope_kernel[(triton.cdiv(rows, 8),)](x, angle, out, rows, x.shape[-2], ROWS=8, WIDTH=x.shape[-1])
        return out
