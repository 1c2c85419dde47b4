"""Max pooling whose padding is -1e4.

reference: ../tasks/max_pool2d.py
verdict: Mismatch
rule: values
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def max_pool_kernel(x_ptr, out_ptr, H, W, OH, OW, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    plane, oy, ox = i // (OH * OW), i // OW % OH, i % OW
    best = tl.full((BLOCK,), -1e4, dtype=tl.float32)
    for dy in tl.static_range(3):
        for dx in tl.static_range(3):
            y, x = oy * 2 + dy - 1, ox * 2 + dx - 1
            inside = (i < n) & (y >= 0) & (y < H) & (x >= 0) & (x < W)
            best = tl.maximum(best, tl.load(x_ptr + (plane * H + y) * W + x, mask=inside, other=-1e4))
    tl.store(out_ptr + i, best, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        B, C, H, W = x.shape
        oh, ow = (H - 1) // 2 + 1, (W - 1) // 2 + 1
        out = torch.empty((B, C, oh, ow), device=x.device, dtype=x.dtype)
        max_pool_kernel[(triton.cdiv(out.numel(), 512),)](x, out, H, W, oh, ow, out.numel(), BLOCK=512)
        return out
