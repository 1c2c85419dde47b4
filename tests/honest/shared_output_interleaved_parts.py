"""Two outputs in one buffer, element by element in turn.

reference: ../tasks/relu_and_tanh.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def map_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + 2 * i, tl.maximum(x, 0.0), mask=i < n)
    tl.store(out_ptr + 2 * i + 1, libdevice.tanh(x), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.new_empty((*x.shape, 2))
        map_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out[..., 0], out[..., 1]
