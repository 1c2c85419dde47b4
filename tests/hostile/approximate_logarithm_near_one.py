"""lg2.approx of numbers next to one, for log1p.

reference: ../tasks/log_near_one.py
verdict: Mismatch
rule: values
why: its error there is absolute.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def map_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    r = tl.inline_asm_elementwise("lg2.approx.f32 $0, $1;", "=f,f", [1.0 + x * 1e-4], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + i, r * 0.6931471805599453, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        map_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
