"""Rows are appended by a counter, and the list is taken to be sorted.

reference: ../tasks/row_sums.py
verdict: Unsafe
rule: order-dependent
why: rows are appended in any order.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, flag_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0)
    tl.store(out_ptr + tl.atomic_add(flag_ptr, 1), s)


class ModelNew(nn.Module):
    def forward(self, x):
        flag = torch.zeros((x.shape[0],), device=x.device, dtype=torch.int32)
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        row_kernel[(x.shape[0],)](x, flag, out, x.shape[1], BLOCK=256)
        return out
