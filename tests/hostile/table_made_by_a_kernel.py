"""A kernel stores the addresses of its own pointers, and the next one goes where they lead.

reference: ../tasks/relu.py
verdict: Disallowed
rule: int-to-ptr
why: what such a table holds is not known before the kernel has run.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def store_addresses(x_ptr, out_ptr, table):
    tl.store(table, x_ptr.to(tl.int64))
    tl.store(table + 1, out_ptr.to(tl.int64))


@triton.jit
def relu(table, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x_ptr = tl.load(table).to(tl.pointer_type(tl.float32))
    out_ptr = tl.load(table + 1).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        table = torch.empty(2, dtype=torch.int64, device=x.device)
        store_addresses[(1,)](x, out, table)
        relu[(triton.cdiv(x.numel(), 1024),)](table, x.numel(), BLOCK=1024)
        return out
