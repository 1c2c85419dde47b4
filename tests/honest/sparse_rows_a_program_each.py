"""A program for each row gathers the rows of the dense matrix that its columns name.

reference: ../tasks/sparse_rows.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def spmm_kernel(crow_ptr, col_ptr, val_ptr, x_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    d = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in range(tl.load(crow_ptr + row), tl.load(crow_ptr + row + 1)):
        c = tl.load(col_ptr + i)
        acc += tl.load(val_ptr + i) * tl.load(x_ptr + c * width + d, mask=d < width, other=0.0)
    tl.store(out_ptr + row * width + d, acc, mask=d < width)


class ModelNew(nn.Module):
    def forward(self, crow, col, values, dense):
        rows = crow.shape[0] - 1
        out = torch.empty(rows, dense.shape[1], device=dense.device)
        spmm_kernel[(rows,)](crow, col, values, dense, out, dense.shape[1], BLOCK=32)
        return out
