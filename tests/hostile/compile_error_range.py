"""A block whose size is no power of two.

reference: ../tasks/softmax.py
verdict: CompileFailed
rule: triton-front-end
why: the front end's diagnostics are reported with the line.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * cols + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + at, e / tl.sum(e, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=x.shape[1])
        return out
