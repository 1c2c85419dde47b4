"""A descriptor that says it has 2^30 rows, of which only the tensor's own are touched.

reference: ../tasks/relu_wide.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def relu_kernel(x_desc, out_desc, rows, BLOCK_N: tl.constexpr):
    n = tl.program_id(0) * BLOCK_N
    for m in range(rows):
        out_desc.store([m, n], tl.maximum(x_desc.load([m, n]), 0.0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rows, cols = x.shape
        x_desc = TensorDescriptor(x, [2**30, cols], [cols, 1], [1, 64])
        out_desc = TensorDescriptor(out, [2**30, cols], [cols, 1], [1, 64])
        relu_kernel[(triton.cdiv(cols, 64),)](x_desc, out_desc, rows, BLOCK_N=64)
        return out
