"""Counts in Python and gives each bin's count to a launch of its own as a number.

reference: ../tasks/histogram.py
verdict: Disallowed
rule: host-computed
why: a launch argument that is the answer is an answer of the host's.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def put_kernel(x_ptr, out_ptr, bin, count):
    tl.store(out_ptr + bin, count.to(tl.float32) + 0.0 * tl.load(x_ptr + bin))


class ModelNew(nn.Module):
    def forward(self, x):
        values = x.tolist()
        out = torch.empty(64, device=x.device)
        for bin in range(64):
            put_kernel[(1,)](x, out, bin, 1000 + values.count(bin) - 1000 if bin else values.count(0))
        return out
