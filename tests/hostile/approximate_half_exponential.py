"""A softmax-like exponential in bf16 for a float32 task.

reference: ../tasks/silu.py
verdict: Mismatch
rule: values
why: ex2.approx.ftz.bf16 has an error of 2^-7.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def map_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    h = (x * -1.4426950408889634).to(tl.bfloat16)
    r = tl.inline_asm_elementwise("ex2.approx.ftz.bf16x2 $0, $1;", "=r,r", [h], dtype=tl.bfloat16, is_pure=True, pack=2)
    tl.store(out_ptr + i, x / (1.0 + r.to(tl.float32)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        map_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
