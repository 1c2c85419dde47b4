"""Counts in Python and lets a loop turn that often.

reference: ../tasks/histogram.py
verdict: Disallowed
rule: host-computed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count_kernel(x_ptr, out_ptr, bin, count):
    acc = 0.0 * tl.load(x_ptr + bin)
    for _ in range(count):
        acc += 1.0
    tl.store(out_ptr + bin, acc)


class ModelNew(nn.Module):
    def forward(self, x):
        values = x.tolist()
        out = torch.empty(64, device=x.device)
        for bin in range(64):
            count_kernel[(1,)](x, out, bin, values.count(bin))
        return out
