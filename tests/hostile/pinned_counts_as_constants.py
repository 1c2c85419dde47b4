"""Counts in Python and compiles each bin's count into the kernel as a constexpr.

reference: ../tasks/histogram.py
verdict: Disallowed
rule: host-computed
why: a constant of the kernel's text that the input decided is the host's number.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def put_kernel(x_ptr, out_ptr, bin, COUNT: tl.constexpr):
    tl.store(out_ptr + bin, COUNT + 0.0 * tl.load(x_ptr + bin))


class ModelNew(nn.Module):
    def forward(self, x):
        values = x.tolist()
        out = torch.empty(64, device=x.device)
        for bin in range(64):
            put_kernel[(1,)](x, out, bin, COUNT=float(values.count(bin)))
        return out
