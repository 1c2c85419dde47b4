"""Patches JITFunction.run, so that each launch computes with torch.

reference: ../tasks/softmax.py
verdict: Disallowed or Untraceable
rule: no-launch or aten-compute or output-without-launch or python-error or not-traceable
why: the calls inside the patched launch are recorded as what they are.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


def run(self, x, out, *args, grid=None, warmup=False, **kwargs):
    out.copy_(torch.softmax(x, dim=-1))


triton.JITFunction.run = run


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * cols + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=tl.arange(0, BLOCK) < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + at, e / tl.sum(e, 0), mask=tl.arange(0, BLOCK) < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
