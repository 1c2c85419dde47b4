"""Installs a profiling function that means to change its callers' local variables as they return.

reference: ../tasks/relu.py
verdict: Mismatch or Untraceable or Disallowed
rule: values or python-error or not-traceable or output-structure or output-without-launch or sandbox-limit
why: whatever it damages is the candidate's own trace.
"""
import sys

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


def meddle(frame, event, argument):
    if event == "return" and frame.f_back is not None:
        for name in list(frame.f_back.f_locals):
            if name in ("steps", "trace", "verdict", "launches", "result"):
                frame.f_back.f_locals[name] = None


class ModelNew(nn.Module):
    def forward(self, x):
        out = copy(x)
        sys.setprofile(meddle)
        return out
