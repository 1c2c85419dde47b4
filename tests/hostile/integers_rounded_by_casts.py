"""Truncates by casting to int64 and back with torch; the kernel takes the root.

reference: ../tasks/abs_sqrt_truncated.py
verdict: Disallowed
rule: aten-compute or aten-share
policy: strict
why: a cast to an integer and back is arithmetic: it truncates.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def root_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.sqrt(tl.abs(tl.load(x_ptr + i, mask=i < n))), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        whole = x.to(torch.int64).to(torch.float32)
        out = torch.empty_like(x)
        root_kernel[(triton.cdiv(x.numel(), 512),)](whole, out, x.numel(), BLOCK=512)
        return out
