"""The maximum by Triton, where it stands by torch.

reference: ../tasks/argmax.py
verdict: Disallowed
rule: aten-compute
why: an argmax over floating-point data is a reduction, though its result is an integer.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def max_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * cols + c, mask=c < cols, other=-float("inf"))
    tl.store(out_ptr + tl.program_id(0), tl.max(x, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        max_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out, x.argmax(dim=-1)
