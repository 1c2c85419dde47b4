"""Computes an offset in 32 bits that does not fit, and comes out in front of the tensor.

reference: ../tasks/relu.py
verdict: Unsafe
rule: offset-overflow or out-of-bounds
why: the product of program id and stride overflows and turns negative, which the mask takes for small.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    far = tl.program_id(0) * stride
    y = tl.load(x_ptr + far, mask=far < n, other=0.0)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0.0) + 0.0 * y, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), 2**30 - 1024, BLOCK=1024)
        return out
