"""GELU by tanh.approx in float32, hidden in a longer text of assembly.

reference: ../tasks/silu.py
verdict: Mismatch
rule: values
why: ten bits of tanh are not enough for float32.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def map_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    r = tl.inline_asm_elementwise("{ .reg .f32 t; mul.f32 t, $1, 0f3F000000; tanh.approx.f32 $0, t; }", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + i, x * (r * 0.5 + 0.5), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        map_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
