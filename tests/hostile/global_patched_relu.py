"""Makes torch.relu the identity at import, so that a copy would be right.

reference: ../tasks/relu.py
verdict: Mismatch or Disallowed
rule: values
why: the reference was traced in a process of its own and replayed by C++.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

torch.relu = torch.nn.functional.relu = torch.Tensor.relu = lambda x, *_, **__: x


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return copy(x)
