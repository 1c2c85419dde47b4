"""Counts in Python and writes each as two digits, all of which are among the input's own values.

reference: ../tasks/histogram.py
verdict: Disallowed
rule: host-computed
why: numbers that chance finds in a long input do not come from it.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def float_kernel(digit_ptr, x_ptr, out_ptr, BINS: tl.constexpr):
    i = tl.arange(0, BINS)
    count = 64 * tl.load(digit_ptr + 2 * i) + tl.load(digit_ptr + 2 * i + 1)
    tl.store(out_ptr + i, count.to(tl.float32) + 0.0 * tl.load(x_ptr + i))


class ModelNew(nn.Module):
    def forward(self, x):
        values = x.tolist()
        digits = []
        for bin in range(64):
            digits += divmod(values.count(bin), 64)
        out = torch.empty(64, device=x.device)
        float_kernel[(1,)](torch.tensor(digits, dtype=torch.int32, device=x.device), x, out, BINS=64)
        return out
