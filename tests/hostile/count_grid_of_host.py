"""As many programs as the host says, each of which adds.

reference: ../tasks/scaled_by_squares.py
verdict: Disallowed
rule: host-computed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < size, other=0.0)
    tl.atomic_add(out_ptr + i, x, mask=i < size)


class ModelNew(nn.Module):
    def forward(self, x, counts):
        n = sum(v * v for v in counts.tolist())
        out = torch.zeros_like(x)
        add_kernel[(triton.cdiv(x.numel(), 256), n)](x, out, x.numel(), BLOCK=256)
        return out
