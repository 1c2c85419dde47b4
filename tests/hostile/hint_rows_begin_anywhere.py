"""Says that rows of 781 elements begin at multiples of 16.

reference: ../tasks/softmax.py
verdict: Unsafe
rule: misaligned
why: Triton makes loads of 16 bytes of it, which fault where a row begins elsewhere.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    first = tl.multiple_of(tl.program_id(0) * cols, 16)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + first + c, mask=c < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + first + c, e / tl.sum(e, 0), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
