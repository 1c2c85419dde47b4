"""A descriptor that says it has more rows than the tensor, read and written to the end of its blocks.

reference: ../tasks/relu_wide.py
verdict: Unsafe
rule: out-of-bounds
why: the hardware checks coordinates against the descriptor's shape, which lets these through.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def relu_kernel(x_desc, out_desc, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m, n = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    out_desc.store([m, n], tl.maximum(x_desc.load([m, n]), 0.0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rows, cols = x.shape
        x_desc = TensorDescriptor(x, [rows + 64, cols], [cols, 1], [32, 64])
        out_desc = TensorDescriptor(out, [rows + 64, cols], [cols, 1], [32, 64])
        relu_kernel[(triton.cdiv(rows, 32), triton.cdiv(cols, 64))](x_desc, out_desc, BLOCK_M=32, BLOCK_N=64)
        return out
