"""Sums rows with index_put_(accumulate=True).

reference: ../tasks/row_sum.py
verdict: Disallowed
rule: aten-compute
why: an accumulating scatter over floating-point data is a reduction.
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
        rows, cols = x.shape
        row = torch.arange(rows, device=x.device)[:, None].expand(rows, cols)
        total = torch.zeros(rows, device=x.device)
        total.index_put_((row,), x, accumulate=True)
        return copy(total)
