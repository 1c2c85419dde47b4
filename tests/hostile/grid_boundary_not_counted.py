"""Does not count what is exactly a half.

reference: ../tasks/share_at_least.py
verdict: Mismatch
why: the boundary itself belongs to the share.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    mask = c < cols
    x = tl.load(x_ptr + row * cols + c, mask=mask, other=0.0)
    y = tl.sum(tl.where(mask & (x > 0.5), 1.0, 0.0), 0) / cols
    tl.store(out_ptr + row, y)


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.new_empty(x.shape[0])
        row_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
