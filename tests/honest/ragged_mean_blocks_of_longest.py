"""As many blocks of rows as the longest sequence has, counted on the host.

reference: ../tasks/ragged_mean.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, length_ptr, out_ptr, stride, width, blocks, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    i, c = tl.program_id(0), tl.arange(0, BLOCK)
    length = tl.load(length_ptr + i)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for b in range(blocks):
        r = b * ROWS + tl.arange(0, ROWS)
        at = (i * stride + r)[:, None] * width + c[None, :]
        acc += tl.sum(tl.load(x_ptr + at, mask=(r < length)[:, None] & (c < width)[None, :], other=0.0), 0)
    tl.store(out_ptr + i * width + c, acc / length.to(tl.float32), mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, counts):
        blocks = triton.cdiv(int(counts.max()), 16)
        out = torch.empty(x.shape[0], x.shape[2], device=x.device)
        mean_kernel[(x.shape[0],)](x, counts, out, x.shape[1], x.shape[2], blocks, ROWS=16, BLOCK=64)
        return out
