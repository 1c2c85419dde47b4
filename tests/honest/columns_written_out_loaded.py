"""Which columns is loaded, though the task writes it out.

reference: ../tasks/columns_written_out.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def columns_kernel(x_ptr, columns_ptr, weight_ptr, out_ptr, width, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    column = tl.load(columns_ptr + i, mask=i < n, other=0)
    x = tl.load(x_ptr + row * width + column, mask=i < n, other=0.0)
    tl.store(out_ptr + row * n + i, x * tl.load(weight_ptr + i, mask=i < n, other=0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(6) + 0.5)

    def forward(self, x, columns):
        n = columns.shape[0]
        out = torch.empty(x.shape[0], n, device=x.device)
        columns_kernel[(x.shape[0],)](x, columns, self.weight, out, x.shape[1], n, BLOCK=8)
        return out
