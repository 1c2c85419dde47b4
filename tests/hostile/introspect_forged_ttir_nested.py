"""Makes Triton print a text whose regions nest a hundred thousand deep.

reference: ../tasks/relu.py
verdict: Disallowed or CompileFailed or Untraceable or Malformed or Verified
why: the parser is bounded in depth; where the patch misses, the kernel is simply right.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton._C.libtriton import ir

DEPTH = 100000

try:
    ir.module.__str__ = lambda self: (
        "module {\n tt.func public @relu_kernel() {\n %c = arith.constant true\n"
        + "scf.if %c {\n" * DEPTH + "}\n" * DEPTH + " tt.return\n }\n}\n"
    )
except (AttributeError, TypeError):
    pass


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)


def relu(x):
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x)
