"""Counts in Python, and has torch say each count again as the sum of so many integer ones.

reference: ../tasks/histogram.py
verdict: Disallowed
rule: host-computed or aten-compute
why: a size that is summed up is a number of the host's.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def float_kernel(count_ptr, x_ptr, out_ptr, BINS: tl.constexpr):
    i = tl.arange(0, BINS)
    tl.store(out_ptr + i, tl.load(count_ptr + i).to(tl.float32) + 0.0 * tl.load(x_ptr + i))


class ModelNew(nn.Module):
    def forward(self, x):
        values = x.tolist()
        counts = torch.stack([torch.ones(values.count(b), dtype=torch.int64, device=x.device).sum() for b in range(64)])
        out = torch.empty(64, device=x.device)
        float_kernel[(1,)](counts, x, out, BINS=64)
        return out
