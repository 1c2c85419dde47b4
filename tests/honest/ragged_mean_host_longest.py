"""The host reads the longest length to size the grid, and scales by a product of host numbers.

reference: ../tasks/ragged_mean.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, length_ptr, out_ptr, stride, width, longest, inverse, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    i, c = tl.program_id(0), tl.arange(0, BLOCK)
    length = tl.load(length_ptr + i)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, longest, ROWS):
        r = start + tl.arange(0, ROWS)
        at = (i * stride + r)[:, None] * width + c[None, :]
        x = tl.load(x_ptr + at, mask=(r < length)[:, None] & (c < width)[None, :], other=0.0)
        acc += tl.sum(x, 0) * inverse
    tl.store(out_ptr + i * width + c, acc / (length.to(tl.float32) * inverse), mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        longest = int(lengths.max())
        out = torch.empty(x.shape[0], x.shape[2], device=x.device)
        mean_kernel[(x.shape[0],)](x, lengths, out, x.shape[1], x.shape[2], longest, 1.0 / longest, ROWS=16, BLOCK=64)
        return out
