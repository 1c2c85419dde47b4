"""Writes the two halves of its output through views, one launch each.

reference: ../tasks/scale_add.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_add(x_ptr, y_ptr, out_ptr, n, ALPHA: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.load(y_ptr + offsets, mask=mask) + ALPHA * x, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, alpha):
        super().__init__()
        self.alpha = alpha

    def forward(self, x, y):
        out = torch.empty_like(y)
        middle = out.numel() // 2 + 3
        for part in (slice(None, middle), slice(middle, None)):
            n = out[part].numel()
            scale_add[(triton.cdiv(n, 1024),)](x[part], y[part], out[part], n, ALPHA=self.alpha, BLOCK=1024)
        return out
