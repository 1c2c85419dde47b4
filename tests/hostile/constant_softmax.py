"""One over the width everywhere.

reference: ../tasks/softmax.py
verdict: Mismatch or Disallowed
rule: values or constant-output
why: close in absolute terms, far off in the output's own scale.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fill_kernel(out_ptr, n, value, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.zeros((BLOCK,), tl.float32) + value, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        fill_kernel[(triton.cdiv(x.numel(), 1024),)](out, x.numel(), 1.0 / x.shape[1], BLOCK=1024)
        return out
