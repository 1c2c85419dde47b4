"""The largest factor of a channel is left out.

reference: ../tasks/learned_channels_clamped.py
verdict: Mismatch
rule: values
why: parameters that are clamped before an input joins them go to either side of each bound.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def k(x_ptr, s_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    s = tl.load(s_ptr + i % 130, mask=i < n)
    tl.store(out_ptr + i, x * tl.minimum(s, 1000.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.rand(130) + 0.5)

    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, self.s, out, x.numel(), BLOCK=1024)
        return out
