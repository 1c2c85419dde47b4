"""PyTorch negates: the imaginary part of a conjugated view is a view that is negated where it is copied.

reference: ../tasks/negative.py
verdict: Disallowed
rule: aten-compute
policy: strict
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
    x = x.contiguous()
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        z = torch.view_as_complex(torch.stack([x, x], -1)).conj()
        return copy(z.imag.clone())
