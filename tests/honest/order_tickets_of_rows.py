"""Programs take rows from a counter until none is left.

reference: ../tasks/row_sums.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, ticket_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    row = tl.atomic_add(ticket_ptr, 1)
    while row < rows:
        s = tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0)
        tl.store(out_ptr + row, s)
        row = tl.atomic_add(ticket_ptr, 1)


class ModelNew(nn.Module):
    def forward(self, x):
        ticket = torch.zeros(1, device=x.device, dtype=torch.int32)
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        row_kernel[(20,)](x, ticket, out, x.shape[0], x.shape[1], BLOCK=256)
        return out
