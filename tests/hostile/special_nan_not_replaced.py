"""Leaves out what a forward says of NaNs, of which samples have none.

reference: ../tasks/nan_to_num_scale.py
verdict: Mismatch
rule: values
why: what a forward says of NaNs is judged.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def clean_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    x = tl.where(x == float("inf"), 8.0, tl.where(x == float("-inf"), -8.0, x))
    tl.store(out_ptr + i, x * 3.0, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        clean_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out
