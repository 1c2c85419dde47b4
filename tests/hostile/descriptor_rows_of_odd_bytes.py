"""A descriptor of rows of 781 float32 elements.

reference: ../tasks/softmax.py
verdict: Unsafe
rule: misaligned
why: a descriptor's strides are multiples of 16 bytes; the hardware drops the rest.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    source = tl.make_tensor_descriptor(x_ptr, [rows, cols], [cols, 1], [1, BLOCK])
    c = tl.arange(0, BLOCK)
    x = tl.reshape(source.load([row, 0]), [BLOCK])
    x = tl.where(c < cols, x, -float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * cols + c, e / tl.sum(e, 0), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[0], x.shape[1], BLOCK=1024)
        return out
