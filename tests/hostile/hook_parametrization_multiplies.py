"""The product is made by a parametrization where an attribute is read.

reference: ../tasks/matmul.py
verdict: Disallowed
rule: aten-compute or output-without-launch or aten-share
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


class Product(nn.Module):
    operands = None

    def forward(self, weight):
        if self.operands is None:
            return weight
        return weight + self.operands[0] @ self.operands[1]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("zero", torch.zeros(()), persistent=False)
        torch.nn.utils.parametrize.register_parametrization(self, "zero", Product(), unsafe=True)

    def forward(self, a, b):
        self.parametrizations.zero[0].operands = (a, b)
        product = self.zero
        self.parametrizations.zero[0].operands = None
        return copy(product)
