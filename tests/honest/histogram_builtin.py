"""tl.histogram in every program, integer atomics, and a kernel that converts the counts.

reference: ../tasks/histogram.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count_kernel(x_ptr, counts_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    counts = tl.histogram(x, BINS, mask=i < n)
    tl.atomic_add(counts_ptr + tl.arange(0, BINS), counts)


@triton.jit
def convert_kernel(counts_ptr, out_ptr, BINS: tl.constexpr):
    b = tl.arange(0, BINS)
    tl.store(out_ptr + b, tl.load(counts_ptr + b).to(tl.float32))


class ModelNew(nn.Module):
    def forward(self, x):
        counts = torch.zeros(64, device=x.device, dtype=torch.int32)
        out = torch.empty(64, device=x.device, dtype=torch.float32)
        count_kernel[(triton.cdiv(x.numel(), 1024),)](x, counts, x.numel(), BINS=64, BLOCK=1024)
        convert_kernel[(1,)](counts, out, BINS=64)
        return out
