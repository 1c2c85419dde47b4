"""Direct strided convolution with static loops over the taps.

reference: ../tasks/conv1d.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr, C: tl.constexpr, L, OUT_L, O,
    TAPS: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, BLOCK: tl.constexpr,
):
    b = tl.program_id(0) // O
    o = tl.program_id(0) % O
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for c in range(C):
        for t in tl.static_range(TAPS):
            at = i * STRIDE + t - PADDING
            x = tl.load(x_ptr + (b * C + c) * L + at, mask=(at >= 0) & (at < L) & (i < OUT_L), other=0.0)
            acc += x * tl.load(w_ptr + (o * C + c) * TAPS + t)
    acc = tl.maximum(acc + tl.load(b_ptr + o), 0.0)
    tl.store(out_ptr + (b * O + o) * OUT_L + i, acc, mask=i < OUT_L)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv1d(in_channels, out_channels, 5, stride=2, padding=2)

    def forward(self, x):
        B, C, L = x.shape
        conv = self.conv
        (taps,), (stride,), (padding,) = conv.kernel_size, conv.stride, conv.padding
        length = (L + 2 * padding - taps) // stride + 1
        out = torch.empty((B, conv.out_channels, length), device=x.device, dtype=x.dtype)
        grid = (B * conv.out_channels, triton.cdiv(length, 128))
        conv_kernel[grid](
            x, conv.weight, conv.bias, out, C, L, length, conv.out_channels,
            TAPS=taps, STRIDE=stride, PADDING=padding, BLOCK=128,
        )
        return out
