"""A block of addresses at once: each row of a tile has a pointer of its own, as batched products have.

reference: ../tasks/bmm.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def products(a_table, b_table, c_table, batch, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
             BLOCK: tl.constexpr):
    g = tl.arange(0, BLOCK)
    row, column = tl.program_id(0), tl.program_id(1)
    on = g < batch
    a = tl.load(a_table + g, mask=on, other=0).to(tl.pointer_type(tl.float32))
    b = tl.load(b_table + g, mask=on, other=0).to(tl.pointer_type(tl.float32))
    c = tl.load(c_table + g, mask=on, other=0).to(tl.pointer_type(tl.float32))
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(K):
        x = tl.load(a + row * K + k, mask=on, other=0.0)
        total += x * tl.load(b + k * N + column, mask=on, other=0.0)
    tl.store(c + row * N + column, total, mask=on)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], a.shape[1], b.shape[2], device=a.device)
        tables = [
            torch.tensor([t[i].data_ptr() for i in range(a.shape[0])], device="cuda") for t in (a, b, out)
        ]
        grid = (a.shape[1], b.shape[2])
        products[grid](*tables, a.shape[0], M=a.shape[1], N=b.shape[2], K=a.shape[2], BLOCK=8)
        return out
