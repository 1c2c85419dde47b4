"""Welford's recurrence as the combine region of a tl.reduce over three values.

reference: ../tasks/layer_norm.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def merge(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    share = tl.where(n == 0.0, 0.0, n_b / n)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, rows, width, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    mask = (r < rows) & (c < width)
    x = tl.load(x_ptr + r * width + c, mask=mask, other=0.0)
    one = tl.where(mask, 1.0, 0.0)
    mean, m2, n = tl.reduce((x, tl.zeros_like(x), one), 1, merge)
    var = m2 / tl.maximum(n, 1.0)
    w = tl.load(w_ptr + c, mask=c < width)
    b = tl.load(b_ptr + c, mask=c < width)
    y = (x - mean[:, None]) / tl.sqrt(var + eps)[:, None] * w + b
    tl.store(out_ptr + r * width + c, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        rows, width = x.shape
        out = torch.empty_like(x)
        layer_norm_kernel[(triton.cdiv(rows, 4),)](
            x, self.norm.weight, self.norm.bias, out, rows, width, self.norm.eps,
            ROWS=4, BLOCK=triton.next_power_of_2(width), num_warps=4,
        )
        return out
