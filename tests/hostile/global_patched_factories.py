"""Makes torch.randn draw zeros, for every module that draws after it.

reference: ../tasks/softmax.py
verdict: Mismatch or Disallowed
rule: values or constant-output
why: inputs are drawn by the replay, where nothing is patched.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

torch.randn = torch.rand = lambda *size, **kwargs: torch.zeros(*size, **kwargs)


@triton.jit
def uniform_kernel(x_ptr, out_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 0.0 + 1.0 / cols, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        uniform_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), x.shape[1], BLOCK=1024)
        return out
