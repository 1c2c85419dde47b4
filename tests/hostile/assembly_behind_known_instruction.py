"""Begins with an instruction from the short list and goes on with another.

reference: ../tasks/softmax.py
verdict: Disallowed
rule: inline-assembly
why: the whole text must be one of the known ones.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * cols + tl.arange(0, BLOCK)
    live = tl.arange(0, BLOCK) < cols
    x = tl.load(x_ptr + at, mask=live, other=-float("inf"))
    x = (x - tl.max(x, 0)) * 1.4426950408889634
    e = tl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1; { .reg .u64 t; mov.u64 t, %clock64; }", "=f,f", [x],
        dtype=tl.float32, is_pure=True, pack=1,
    )
    tl.store(out_ptr + at, e / tl.sum(e, 0), mask=live)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
