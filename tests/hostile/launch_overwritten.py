"""The kernel writes the output, then torch writes all of it again.

reference: ../tasks/relu.py
verdict: Disallowed
rule: launch-without-effect or output-without-launch or aten-share
why: no byte of the kernel's is left in the answer.
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
    def forward(self, x):
        out = copy(x)
        torch.clamp(x, min=0, out=out)
        return out
