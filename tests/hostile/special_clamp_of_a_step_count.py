"""The factor grows beyond one.

reference: ../tasks/step_count_in_a_buffer.py
verdict: Mismatch
rule: values
why: integers that only numbers are computed of become much larger.
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
    tl.store(out_ptr + i, x * (s / 1000), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("s", torch.tensor(3))

    def forward(self, x):
        out = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, self.s, out, x.numel(), BLOCK=1024)
        return out
