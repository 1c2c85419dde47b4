"""Reads the GPU's clock and its multiprocessor through Triton's own extras, which are assembly inside.

reference: ../tasks/relu.py
verdict: Disallowed
rule: inline-assembly
why: what counts is the text of the kernel, not where the assembly came from.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer, smid


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    usual = (globaltimer() > 0) & (smid() >= 0)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.where(usual, tl.maximum(x, 0.0), x), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
