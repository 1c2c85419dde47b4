"""A descriptor's stride of 2^34 elements wraps at 64 bits to an address before the tensor's start.

reference: ../tasks/relu_wide.py
verdict: Unsafe
rule: out-of-bounds
why: the wrapped address counts, and it is outside of the tensor by one row.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def relu_kernel(x_desc, out_desc, BLOCK_N: tl.constexpr):
    m, n = tl.program_id(0), tl.program_id(1) * BLOCK_N
    x = tl.reshape(x_desc.load([2**30, m, n]), (1, BLOCK_N))
    out_desc.store([m, n], tl.maximum(x, 0.0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rows, cols = x.shape
        x_desc = TensorDescriptor(x, [2**30 + 1, rows, cols], [2**34 - cols // 2**30 - 4, cols, 1], [1, 1, 64])
        out_desc = TensorDescriptor.from_tensor(out, [1, 64])
        relu_kernel[(rows, triton.cdiv(cols, 64))](x_desc, out_desc, BLOCK_N=64)
        return out
