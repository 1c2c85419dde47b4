"""Takes memory until refused, swallows the refusal, and goes on at the limit; the answer is wrong.

reference: ../tasks/relu.py
verdict: Untraceable or Mismatch or TimedOut
why: at the limit it is the candidate that runs out of memory.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out

KEPT = []


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            while len(KEPT) < 1024:
                KEPT.append(bytearray(16 << 20))
        except MemoryError:
            KEPT.pop()
        return copy(x)
