"""Subtracts 10 instead of the maximum: enough for a normal sample.

reference: ../tasks/log_softmax.py
verdict: Mismatch
rule: values
why: huge and very negative values leave the range.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def log_softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * cols + tl.arange(0, BLOCK)
    live = tl.arange(0, BLOCK) < cols
    x = tl.load(x_ptr + at, mask=live, other=-float("inf")) - 10.0
    tl.store(out_ptr + at, x - tl.log(tl.sum(tl.exp(x), 0)), mask=live)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        log_softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
