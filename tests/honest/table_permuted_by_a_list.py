"""A table of addresses that is put in order by a list of numbers.

reference: ../tasks/add_three.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def k(table, out_ptr, n, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for t in range(count):
        ptr = tl.load(table + t).to(tl.pointer_type(tl.float32))
        total += tl.load(ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, total, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y, z):
        out = torch.empty_like(x)
        table = torch.tensor([z.data_ptr(), x.data_ptr(), y.data_ptr()], device="cuda")[[1, 2, 0]]
        k[(triton.cdiv(x.numel(), 1024),)](table, out, x.numel(), 3, BLOCK=1024)
        return out
