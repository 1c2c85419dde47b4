"""Hides the product in a torch.autograd.Function.

reference: ../tasks/matmul.py
verdict: Disallowed
rule: aten-compute
why: its forward is traced like any other code.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return copy(a.mm(b))

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


class ModelNew(nn.Module):
    def forward(self, a, b):
        return Product.apply(a, b)
