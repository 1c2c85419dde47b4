"""Blocks that begin one row, or sixteen bytes, before the tensor are loaded: what is before is zero.

reference: ../tasks/lagged_differences.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def difference_kernel(x_desc, rows_desc, cols_desc, LAG: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    x = x_desc.load([m, n])
    rows_desc.store([m, n], x - x_desc.load([m - 1, n]))
    cols_desc.store([m, n], x - x_desc.load([m, n - LAG]))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = torch.empty_like(x), torch.empty_like(x)
        descriptors = [TensorDescriptor.from_tensor(t, [32, 64]) for t in (x, rows, cols)]
        grid = (triton.cdiv(x.shape[0], 32), triton.cdiv(x.shape[1], 64))
        difference_kernel[grid](*descriptors, LAG=4, BLOCK_M=32, BLOCK_N=64)
        return rows, cols
