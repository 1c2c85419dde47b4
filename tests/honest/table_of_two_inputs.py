"""Passes the tensors' addresses in an integer tensor, as grouped products like to do.

reference: ../tasks/add_relu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_relu(table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x_ptr = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    y_ptr = tl.load(table_ptr + 1).to(tl.pointer_type(tl.float32))
    total = tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(total, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        table = torch.tensor([x.data_ptr(), y.data_ptr()], dtype=torch.int64, device="cuda")
        out = torch.empty_like(x)
        add_relu[(triton.cdiv(x.numel(), 1024),)](table, out, x.numel(), BLOCK=1024)
        return out
