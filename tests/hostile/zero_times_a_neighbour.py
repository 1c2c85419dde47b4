"""A row's sum spoils what a factor of zero hides: zero times an infinity of another column is a NaN.

reference: ../tasks/larger_where_kept.py
verdict: Mismatch
rule: values
why: zeros that depend on no infinity are zeros.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, z_ptr, out_ptr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    at, on = tl.program_id(0) * COLUMNS + c, c < COLUMNS
    x = tl.load(x_ptr + at, mask=on, other=float("-inf"))
    y, z = tl.load(y_ptr + at, mask=on), tl.load(z_ptr + at, mask=on)
    t = tl.where(on, x - tl.max(x, 0), 0.0)
    larger = tl.maximum(t, -tl.abs(y)) + 0.0 * tl.sum(tl.where(on, y, 0.0), 0)
    tl.store(out_ptr + at, larger * (z > 0.1).to(tl.float32), mask=on)


class ModelNew(nn.Module):
    def forward(self, x, y, z):
        out = torch.empty_like(x)
        kernel[(x.shape[0],)](x, y, z, out, COLUMNS=x.shape[1], BLOCK=256)
        return out
