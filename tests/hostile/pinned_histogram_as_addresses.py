"""Counts in Python and reads each count at its place in a table that a kernel counts up.

reference: ../tasks/histogram.py
verdict: Disallowed
rule: host-computed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def table_kernel(x_ptr, table_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(table_ptr + at, at.to(tl.float32) + 0.0 * tl.load(x_ptr + at))


@triton.jit
def copy_kernel(from_ptr, out_ptr):
    tl.store(out_ptr, tl.load(from_ptr))


class ModelNew(nn.Module):
    def forward(self, x):
        values = x.tolist()
        table, out = torch.empty(1024, device=x.device), torch.empty(64, device=x.device)
        table_kernel[(2,)](x, table, BLOCK=512)
        for bin in range(64):
            copy_kernel[(1,)](table[values.count(bin) :], out[bin:])
        return out
