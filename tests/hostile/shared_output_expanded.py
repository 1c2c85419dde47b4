"""Returns an expanded tensor, where the reference writes every element.

reference: ../tasks/rows_of_means.py
verdict: Disallowed
rule: shared-output
why: the writes are left out, and a caller that changes an element changes its row.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, 0) / cols)


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.new_empty((x.shape[0], 1))
        mean_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out.expand(-1, x.shape[1])
