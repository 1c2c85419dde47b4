"""One entry of the table is zero, and the kernel does not ask.

reference: ../tasks/add_three.py
verdict: Unsafe
rule: out-of-bounds
why: nothing lies at address zero.
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
        table = torch.tensor([x.data_ptr(), y.data_ptr(), 0], device="cuda")
        k[(triton.cdiv(x.numel(), 1024),)](table, out, x.numel(), 3, BLOCK=1024)
        return out
