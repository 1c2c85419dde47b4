"""The least scale is left out.

reference: ../tasks/fake_quantised_by_a_learned_scale.py
verdict: Mismatch
rule: values
why: parameters that are clamped before an input joins them go to either side of each bound.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def k(x_ptr, s_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    s = tl.load(s_ptr)
    tl.store(out_ptr + i, tl.minimum(tl.maximum(libdevice.rint(x / tl.abs(s)), -128.0), 127.0) * tl.abs(s), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.tensor(0.05))

    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, self.s, out, x.numel(), BLOCK=1024)
        return out
