"""sin.approx of arguments of some tens, where few digits are left.

reference: ../tasks/sine.py
verdict: Mismatch
rule: values
why: the error grows with the argument: 2^-14.7 at 100 pi.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def map_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    r = tl.inline_asm_elementwise("sin.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + i, r, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        map_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
