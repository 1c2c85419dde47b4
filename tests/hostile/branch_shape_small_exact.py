"""Exact on small inputs, where correctness is usually tested, and wrong on large ones.

reference: ../tasks/scale_add.py
verdict: Mismatch
rule: values
why: values are compared at the task's own size.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_add(x_ptr, y_ptr, out_ptr, alpha, n, limit, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=(i < n) & (i < limit), other=0.0)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, y + alpha * x, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, alpha):
        super().__init__()
        self.alpha = float(alpha)

    def forward(self, x, y):
        n = x.numel()
        out = torch.empty_like(x)
        limit = n if n <= 65536 else n // 2
        scale_add[(triton.cdiv(n, 1024),)](x, y, out, self.alpha, n, limit, BLOCK=1024)
        return out
