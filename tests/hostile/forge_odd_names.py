"""Parameters and attributes whose names are no valid text, or a megabyte long; the kernel is right.

reference: ../tasks/relu.py
verdict: Verified or Untraceable or Mismatch or Malformed
why: names are data; at worst such a trace is refused.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)


def relu(x):
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("\udcff\udc80", "a" * (1 << 20), "line\nbreak", 'quote"and\\slash', "\x00", "\u202eright to left"):
            self._parameters[name] = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return relu(x)
