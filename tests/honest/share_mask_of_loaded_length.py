"""A loaded length masks the rows of one large tile; PyTorch halves the few sums.

reference: ../tasks/ragged_sum.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, lengths_ptr, out_ptr, longest, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    length = tl.load(lengths_ptr + i).to(tl.int32)
    r = tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + (i * longest + r) * width + c, mask=(r < length) & (c < width), other=0.0)
    cols = tl.arange(0, BLOCK)
    tl.store(out_ptr + i * width + cols, tl.sum(x, axis=0), mask=cols < width)


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        n, longest, width = x.shape
        out = torch.empty((n, width), device=x.device, dtype=x.dtype)
        sum_kernel[(n,)](x, lengths, out, longest, width, ROWS=triton.next_power_of_2(longest), BLOCK=64)
        return out * 0.5
