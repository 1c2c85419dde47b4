"""An address of a table is moved by half an element.

reference: ../tasks/relu_plus.py
verdict: Unsafe
rule: misaligned
why: a float32 lies at a multiple of four bytes.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def k(table, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x_ptr = (tl.load(table) + 2).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n - 1), 0.0) + 1, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        table = torch.tensor([x.data_ptr()], device=x.device)
        k[(triton.cdiv(x.numel(), 1024),)](table, out, x.numel(), BLOCK=1024)
        return out
