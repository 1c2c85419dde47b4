"""A softmax of bf16 rows with ex2.approx and div.full of its own.

reference: ../tasks/softmax_bf16.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    at = tl.program_id(0) * cols + c
    x = tl.load(x_ptr + at, mask=c < cols, other=-float("inf")).to(tl.float32) * 1.4426950408889634
    d = x - tl.max(x, 0)
    e = tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [d], dtype=tl.float32, is_pure=True, pack=1)
    total = tl.zeros_like(e) + tl.sum(e, 0)
    p = tl.inline_asm_elementwise("div.full.f32 $0, $1, $2;", "=f,f,f", [e, total], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + at, p.to(tl.bfloat16), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
