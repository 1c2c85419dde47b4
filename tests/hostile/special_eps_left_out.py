"""Leaves out the number that keeps a variance from nought.

reference: ../tasks/layer_norm.py
verdict: Mismatch
rule: values
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + c, mask=c < n, other=0.0)
    d = tl.where(c < n, x - tl.sum(x, axis=0) / n, 0.0)
    y = d / tl.sqrt(tl.sum(d * d, axis=0) / n)
    w, b = tl.load(w_ptr + c, mask=c < n), tl.load(b_ptr + c, mask=c < n)
    tl.store(out_ptr + row * n + c, y * w + b, mask=c < n)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.shape[-1]
        norm_kernel[(x.numel() // n,)](x, self.norm.weight, self.norm.bias, out, n, BLOCK=triton.next_power_of_2(n))
        return out
