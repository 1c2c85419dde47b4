"""No concatenation: each part goes straight to its columns of the output; libdevice.tanh.

reference: ../tasks/cat_tanh.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def tanh_kernel(x_ptr, out_ptr, cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    tl.store(out_ptr + row * stride + c, libdevice.tanh(x), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, a, b):
        rows = a.shape[0]
        out = torch.empty((rows, a.shape[1] + b.shape[1]), device=a.device, dtype=a.dtype)
        for source, target in ((a, out[:, : a.shape[1]]), (b, out.narrow(1, a.shape[1], b.shape[1]))):
            cols = source.shape[1]
            tanh_kernel[(rows,)](source, target, cols, target.stride(0), BLOCK=triton.next_power_of_2(cols))
        return out
