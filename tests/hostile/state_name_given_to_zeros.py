"""In the third call the name of the weight is given to another parameter, of zeros.

reference: ../tasks/scaled_columns.py
verdict: Disallowed
rule: state-written
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, w_ptr, out_ptr, n, C, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * tl.load(w_ptr + i % C, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(64) + 0.5)
        self.calls = 0

    def forward(self, x):
        out = torch.empty_like(x)
        scale[(1,)](x, self.w, out, 1024, 64, BLOCK=1024)
        self.calls += 1
        if self.calls >= 3:
            self.w = nn.Parameter(torch.zeros_like(self.w))
        return out
