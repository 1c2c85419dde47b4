"""At the threshold itself the other function is taken.

reference: ../tasks/learned_gate_with_a_threshold.py
verdict: Mismatch
rule: values
why: what is compared with a number becomes that number, too.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def k(x_ptr, s_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    s = tl.load(s_ptr)
    tl.store(out_ptr + i, tl.where(s >= 30.0, x * 2.0, x * s), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.tensor(0.4))

    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, self.s, out, x.numel(), BLOCK=1024)
        return out
