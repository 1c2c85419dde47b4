"""Two-dimensional tiles through block pointers with boundary checks, advanced along the columns.

reference: ../tasks/relu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_rows(x_ptr, out_ptr, rows, cols, stride, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    row = tl.program_id(0) * BLOCK_R
    src = tl.make_block_ptr(x_ptr, (rows, cols), (stride, 1), (row, 0), (BLOCK_R, BLOCK_C), (1, 0))
    dst = tl.make_block_ptr(out_ptr, (rows, cols), (cols, 1), (row, 0), (BLOCK_R, BLOCK_C), (1, 0))
    for _ in range(0, cols, BLOCK_C):
        x = tl.load(src, boundary_check=(0, 1), padding_option="zero")
        tl.store(dst, tl.where(x > 0, x, 0.0), boundary_check=(0, 1))
        src = tl.advance(src, (0, BLOCK_C))
        dst = tl.advance(dst, (0, BLOCK_C))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty((rows, cols), device=x.device, dtype=x.dtype)
        relu_rows[(triton.cdiv(rows, 16),)](x, out, rows, cols, x.stride(0), BLOCK_R=16, BLOCK_C=64)
        return out
