"""A second grid dimension of as many tiles as the longest sequence has; atomics add their parts.

reference: ../tasks/ragged_mean.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def part_kernel(x_ptr, length_ptr, out_ptr, stride, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    i, c = tl.program_id(0), tl.arange(0, BLOCK)
    length = tl.load(length_ptr + i)
    r = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    at = (i * stride + r)[:, None] * width + c[None, :]
    x = tl.load(x_ptr + at, mask=(r < length)[:, None] & (c < width)[None, :], other=0.0)
    tl.atomic_add(out_ptr + i * width + c, tl.sum(x, 0) / length.to(tl.float32), mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, counts):
        out = torch.zeros(x.shape[0], x.shape[2], device=x.device)
        grid = (x.shape[0], triton.cdiv(max(counts.tolist()), 8))
        part_kernel[grid](x, counts, out, x.shape[1], x.shape[2], ROWS=8, BLOCK=64)
        return out
