"""Registers an operator for CUDA with torch.library.Library, not with the custom_op helper.

reference: ../tasks/matmul.py
verdict: Disallowed or Untraceable
rule: aten-compute or no-launch or output-without-launch or python-error or not-traceable
why: an operator that ATen does not have is either opened up or refused.
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

library = torch.library.Library("nereid_hostile_lib", "DEF")
library.define("product(Tensor a, Tensor b) -> Tensor")
library.impl("product", lambda a, b: torch.mm(a, b), "CUDA")
library.impl("product", lambda a, b: a.new_empty(a.shape[0], b.shape[1]), "Meta")


class ModelNew(nn.Module):
    def forward(self, a, b):
        return copy(torch.ops.nereid_hostile_lib.product(a, b))
