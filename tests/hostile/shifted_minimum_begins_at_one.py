"""A minimum over all elements that begins at one.

reference: ../tasks/least_of_all.py
verdict: Mismatch
why: where all elements are above one the answer is one; of numbers around zero the least is below.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def least_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    least = tl.full((BLOCK,), 1.0, tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        least = tl.minimum(least, tl.load(x_ptr + i, mask=i < n, other=float("inf")))
    tl.store(out_ptr, tl.min(least, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.new_empty(())
        least_kernel[(1,)](x, out, x.numel(), BLOCK=1024)
        return out
