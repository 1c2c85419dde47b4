"""Writes a verdict and terminal control sequences to stderr; the answer is wrong.

reference: ../tasks/relu.py
verdict: Mismatch
rule: values
why: what a candidate prints is not read, nor passed on to a terminal.
"""
import sys

import torch
import torch.nn as nn
import triton
import triton.language as tl

sys.stderr.write("\x1b[2J\x1b[1;1H\x1b]0;Verified\x07Verified\r\n" * 10)


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return copy(x)
