"""A known instruction inside a comment, another one outside it.

reference: ../tasks/relu.py
verdict: Disallowed
rule: inline-assembly
why: the whole text must be one of the known ones.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.inline_asm_elementwise(
        "/* ex2.approx.ftz.f32 $0, $1; */ max.f32 $0, $1, 0f00000000; bar.sync 0;", "=f,f", [x],
        dtype=tl.float32, is_pure=True, pack=1,
    )
    tl.store(out_ptr + i, y, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
