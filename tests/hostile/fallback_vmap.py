"""A matrix product as a vmap of a vmap of dot products.

reference: ../tasks/matmul_odd.py
verdict: Disallowed
rule: aten-compute
why: torch.func's transforms end in ATen calls, which are recorded.
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


class ModelNew(nn.Module):
    def forward(self, a, b):
        rows = torch.func.vmap(torch.func.vmap(torch.dot, in_dims=(None, 1)), in_dims=(0, None))
        return copy(rows(a, b))
