"""Says that an address is a multiple of 16 bytes, which holds for every fourth row alone.

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
def kernel(x_ptr, out_ptr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64) * COLUMNS
    x_row, out_row = tl.multiple_of(x_ptr + row, 16), out_ptr + row
    x = tl.load(x_row + c, mask=c < COLUMNS)
    tl.store(out_row + c, tl.maximum(x, 0.0) + 1, mask=c < COLUMNS)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(x.shape[0],)](x, out, COLUMNS=x.shape[1], BLOCK=256)
        return out
