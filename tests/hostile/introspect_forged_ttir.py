"""Makes Triton print garbage for its modules; the kernel itself would be right.

reference: ../tasks/relu.py
verdict: Disallowed or CompileFailed or Untraceable or Malformed or Verified
why: text that does not parse is no kernel; where the patch misses, the kernel is simply right.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton._C.libtriton import ir

try:
    ir.module.__str__ = lambda self: "module { tt.func public @relu_kernel(" + "(" * 100000
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
