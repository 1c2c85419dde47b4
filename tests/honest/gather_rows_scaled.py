"""Indexed rows, each scaled by its weight.

reference: ../tasks/gather_rows.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gather_kernel(x_ptr, index_ptr, weight_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    source = tl.load(index_ptr + i)
    weight = tl.load(weight_ptr + i)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + source * cols + c, mask=c < cols)
        tl.store(out_ptr + i * cols + c, x * weight, mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x, index, weight):
        out = torch.empty((index.shape[0], x.shape[1]), device=x.device, dtype=x.dtype)
        gather_kernel[(index.shape[0],)](x, index, weight, out, x.shape[1], BLOCK=64)
        return out
