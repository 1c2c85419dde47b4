"""Only the weights are truncated to TF32; the image stays as it is.

reference: ../tasks/conv2d.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr, B, C, H, W, O, KK,
    BLOCK_P: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_K: tl.constexpr,
):
    pixel = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    o = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)
    b = pixel // (H * W)
    y = pixel // W % H
    x = pixel % W
    live = pixel < B * H * W
    acc = tl.zeros((BLOCK_P, BLOCK_O), dtype=tl.float32)
    for start in range(0, KK, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        c, dy, dx = k // 9, k // 3 % 3 - 1, k % 3 - 1
        yy = y[:, None] + dy[None, :]
        xx = x[:, None] + dx[None, :]
        inside = live[:, None] & (k[None, :] < KK) & (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W)
        patch = tl.load(x_ptr + ((b[:, None] * C + c[None, :]) * H + yy) * W + xx, mask=inside, other=0.0)
        w = tl.load(w_ptr + o[None, :] * KK + k[:, None], mask=(o[None, :] < O) & (k[:, None] < KK), other=0.0)
        w = (w.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)
        acc = tl.dot(patch, w, acc, input_precision="ieee")
    acc += tl.load(b_ptr + o, mask=o < O, other=0.0)[None, :]
    where = (b[:, None] * O + o[None, :]) * (H * W) + (pixel % (H * W))[:, None]
    tl.store(out_ptr + where, acc, mask=live[:, None] & (o[None, :] < O))


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)

    def forward(self, x):
        B, C, H, W = x.shape
        O = self.conv.out_channels
        out = torch.empty((B, O, H, W), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(B * H * W, 64), triton.cdiv(O, 16))
        conv_kernel[grid](
            x, self.conv.weight, self.conv.bias, out, B, C, H, W, O, C * 9, BLOCK_P=64, BLOCK_O=16, BLOCK_K=32
        )
        return out
