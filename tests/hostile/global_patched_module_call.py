"""Makes every module's call return its first argument.

reference: ../tasks/softmax.py
verdict: Disallowed or Mismatch or Untraceable
rule: no-launch or values or python-error or not-traceable
why: if the patch reaches anything, it is the candidate's own call.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

nn.Module.__call__ = lambda self, *inputs, **_: inputs[0]


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
