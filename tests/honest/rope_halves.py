"""Rotation of halves, sines and cosines made in the kernel through libdevice.

reference: ../tasks/rope.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def rope_kernel(x_ptr, angle_ptr, out_ptr, length, HALF: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, HALF)
    angle = tl.load(angle_ptr + row % length * HALF + c)
    cos, sin = libdevice.cos(angle), libdevice.sin(angle)
    a = tl.load(x_ptr + row * 2 * HALF + c)
    b = tl.load(x_ptr + row * 2 * HALF + HALF + c)
    tl.store(out_ptr + row * 2 * HALF + c, a * cos - b * sin)
    tl.store(out_ptr + row * 2 * HALF + HALF + c, b * cos + a * sin)


class ModelNew(nn.Module):
    def forward(self, x, angle):
        out = torch.empty_like(x)
        length, width = x.shape[-2:]
        rope_kernel[(x.numel() // width,)](x, angle, out, length, HALF=width // 2)
        return out
