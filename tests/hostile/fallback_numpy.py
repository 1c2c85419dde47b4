"""Computes with NumPy on the host and carries the answer back.

reference: ../tasks/relu.py
verdict: Untraceable
rule: reads-data or python-error or not-traceable
why: a trace has no floating-point data to give to NumPy.
"""
import numpy as np

import torch
import torch.nn as nn
import triton
import triton.language as tl


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
        y = np.maximum(x.cpu().numpy(), 0)
        return copy(torch.from_numpy(y).to(x.device))
