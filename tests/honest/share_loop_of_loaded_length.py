"""Rows as many as a loaded length says are added up in a loop; PyTorch halves the few sums.

reference: ../tasks/ragged_sum.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, lengths_ptr, out_ptr, longest, width, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    length = tl.load(lengths_ptr + i).to(tl.int32)
    c = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for r in range(0, length):
        total += tl.load(x_ptr + (i * longest + r) * width + c, mask=c < width, other=0.0)
    tl.store(out_ptr + i * width + c, total, mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        n, longest, width = x.shape
        out = torch.empty((n, width), device=x.device, dtype=x.dtype)
        sum_kernel[(n,)](x, lengths, out, longest, width, BLOCK=64)
        return out * 0.5
