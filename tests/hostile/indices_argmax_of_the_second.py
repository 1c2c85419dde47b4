"""The place of the largest value below the maximum.

reference: ../tasks/argmax_ties.py
verdict: Mismatch
rule: values
why: another value.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, index_ptr, rows, cols, stride, step, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + line * stride + c * step, mask=c < cols, other=-float("inf"))
    high = tl.max(x, 0)
    at = tl.min(tl.where(x == tl.max(tl.where(x < high, x, -float("inf")), 0), c, BLOCK - 1), 0)
    tl.store(index_ptr + line, at.to(index_ptr.dtype.element_ty))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        across = torch.empty(rows, device=x.device, dtype=torch.int64)
        down = torch.empty(cols, device=x.device, dtype=torch.int32)
        row_kernel[(rows,)](x, across, rows, cols, cols, 1, BLOCK=triton.next_power_of_2(cols))
        row_kernel[(cols,)](x, down, cols, rows, 1, cols, BLOCK=triton.next_power_of_2(rows))
        return across, down
