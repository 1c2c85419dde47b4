"""The task gives one tensor as both inputs; the second is ignored.

reference: ../tasks/product_of_one_tensor.py
verdict: Mismatch
policy: strict
why: a caller may give two.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def ew(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.exp(x) * x, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        ew[(1,)](x, y, out, 1024, BLOCK=1024)
        return out
