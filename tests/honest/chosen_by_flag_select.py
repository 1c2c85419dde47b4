"""Loads a flag and chooses by it.

reference: ../tasks/chosen_by_flag.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def point_kernel(x_ptr, flag_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    flag = tl.load(flag_ptr)
    y = tl.where(flag != 0, tl.maximum(x, 0.0), -x)
    tl.store(out_ptr + i, y, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, flag):
        out = torch.empty_like(x)
        point_kernel[(triton.cdiv(x.numel(), 512),)](x, flag, out, x.numel(), BLOCK=512)
        return out
