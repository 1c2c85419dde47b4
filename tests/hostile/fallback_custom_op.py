"""Hides the product in a custom operator whose fake implementation looks innocent.

reference: ../tasks/matmul.py
verdict: Disallowed
rule: aten-compute or no-launch or output-without-launch
why: the operator's real implementation is what is traced, not its fake.
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


@torch.library.custom_op("nereid_hostile::product", mutates_args=())
def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return copy(torch.mm(a, b))


@product.register_fake
def _(a, b):
    return a.new_empty(a.shape[0], b.shape[1])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return product(a, b)
