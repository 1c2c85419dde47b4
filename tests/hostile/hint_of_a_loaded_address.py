"""tl.multiple_of of an address from a table, which lies four bytes into a tensor.

reference: ../tasks/relu_plus.py
verdict: Unsafe
rule: misaligned
why: Triton loads 16 bytes at once from there.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def k(table, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x_ptr = tl.multiple_of(tl.load(table).to(tl.pointer_type(tl.float32)), 16)
    tl.store(out_ptr + 1 + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0) + 1, mask=i < n)
    if tl.program_id(0) == 0:
        tl.store(out_ptr, tl.maximum(tl.load(x_ptr - 1), 0.0) + 1)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        table = torch.tensor([x.data_ptr() + 4], device=x.device)
        k[(triton.cdiv(x.numel(), 1024),)](table, out, x.numel() - 1, BLOCK=1024)
        return out
