"""Counts the pinned integers in Python and hands the counts to a kernel as a tensor.

reference: ../tasks/histogram.py
verdict: Disallowed
rule: host-computed
why: the answer was worked out on the host.
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
        counts = [0] * 64
        for value in x.tolist():
            counts[value] += 1
        out = torch.empty(64, device=x.device)
        float_kernel[(1,)](torch.tensor(counts, device=x.device), x, out, BINS=64)
        return out
