"""Asks for a million warps and a billion stages.

reference: ../tasks/relu.py
verdict: CompileFailed or Untraceable or Disallowed or Verified
why: options are numbers within bounds; where they have no effect on a CPU the kernel is right.
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
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](
            x, out, x.numel(), BLOCK=1024, num_warps=1 << 20, num_stages=1 << 30
        )
        return out
