"""A ticket from a counter says which row is read, the program number which is written.

reference: ../tasks/row_sums.py
verdict: Unsafe
rule: order-dependent
why: tickets are taken in any order.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, ticket_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.atomic_add(ticket_ptr, 1)
    c = tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0)
    tl.store(out_ptr + tl.program_id(0), s)


class ModelNew(nn.Module):
    def forward(self, x):
        ticket = torch.zeros(1, device=x.device, dtype=torch.int32)
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        row_kernel[(x.shape[0],)](x, ticket, out, x.shape[1], BLOCK=256)
        return out
