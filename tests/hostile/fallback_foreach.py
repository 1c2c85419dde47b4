"""Uses torch's foreach operators for the arithmetic.

reference: ../tasks/add_relu.py
verdict: Disallowed
rule: aten-share or aten-compute
why: _foreach_add is pointwise work like any other.
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
    def forward(self, x, y):
        (total,) = torch._foreach_add([x], [y])
        (total,) = torch._foreach_maximum([total], 0.0)
        return copy(total)
