"""Each element is a mean of four neighbours with weights of its place.

reference: ../tasks/bilinear_twice.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def up_kernel(x_ptr, out_ptr, total, H, W, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < total
    x, y, plane = i % (2 * W), i // (2 * W) % (2 * H), i // (4 * H * W)
    fy = tl.maximum((y.to(tl.float32) + 0.5) * 0.5 - 0.5, 0.0)
    fx = tl.maximum((x.to(tl.float32) + 0.5) * 0.5 - 0.5, 0.0)
    y0, x0 = fy.to(tl.int32), fx.to(tl.int32)
    ay, ax = fy - y0, fx - x0
    y1, x1 = tl.minimum(y0 + 1, H - 1), tl.minimum(x0 + 1, W - 1)
    base = x_ptr + plane * H * W
    a, b = tl.load(base + y0 * W + x0, mask=mask), tl.load(base + y0 * W + x1, mask=mask)
    c, d = tl.load(base + y1 * W + x0, mask=mask), tl.load(base + y1 * W + x1, mask=mask)
    upper, lower = a * (1 - ax) + b * ax, c * (1 - ax) + d * ax
    tl.store(out_ptr + i, upper * (1 - ay) + lower * ay, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        n, c, h, w = x.shape
        out = torch.empty(n, c, 2 * h, 2 * w, device=x.device)
        up_kernel[(triton.cdiv(out.numel(), 256),)](x, out, out.numel(), h, w, BLOCK=256)
        return out
