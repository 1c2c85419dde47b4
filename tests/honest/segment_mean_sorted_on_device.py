"""Rows ordered by segment with torch.argsort, ends by searchsorted; the kernel gathers, sums and divides.

reference: ../tasks/segment_mean.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, order_ptr, ends_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    s = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    first = tl.load(ends_ptr + s)
    last = tl.load(ends_ptr + s + 1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for at in range(first, last):
        r = tl.load(order_ptr + at)
        acc += tl.load(x_ptr + r * cols + c, mask=c < cols, other=0.0)
    tl.store(out_ptr + s * cols + c, acc / tl.maximum(last - first, 1).to(tl.float32), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x, segment):
        ordered, order = torch.sort(segment, stable=True)
        ends = torch.searchsorted(ordered, torch.arange(38, device=x.device))
        out = torch.empty(37, x.shape[1], device=x.device)
        mean_kernel[(37,)](x, order, ends, out, x.shape[1], BLOCK=64)
        return out
