"""Loads through an address with ld.global.

reference: ../tasks/relu.py
verdict: Disallowed
rule: inline-assembly
why: assembly can reach any memory.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    address = (x_ptr + tl.minimum(i, n - 1)).to(tl.int64)
    x = tl.inline_asm_elementwise("ld.global.f32 $0, [$1];", "=f,l", [address], dtype=tl.float32, is_pure=False, pack=1)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
