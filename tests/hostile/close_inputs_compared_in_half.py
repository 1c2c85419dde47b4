"""Two inputs are compared after both were rounded to float16.

reference: ../tasks/larger_or_half.py
verdict: Mismatch
rule: values
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def larger_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i, mask=i < n), tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.where(x.to(tl.float16) >= y.to(tl.float16), x, 0.5 * y), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        n = x.numel()
        larger_kernel[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
        return out
