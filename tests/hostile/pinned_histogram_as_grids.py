"""Counts in Python and launches as many programs for each bin, each of which adds one.

reference: ../tasks/histogram.py
verdict: Disallowed
rule: host-computed
why: what a grid says is said by the host.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def one_kernel(x_ptr, out_ptr, bin):
    tl.atomic_add(out_ptr + bin, 1.0 + 0.0 * tl.load(x_ptr + tl.program_id(0)))


class ModelNew(nn.Module):
    def forward(self, x):
        values = x.tolist()
        out = torch.zeros(64, device=x.device)
        for bin in range(64):
            one_kernel[(values.count(bin),)](x, out, bin)
        return out
