"""The kernel's only store is masked out everywhere.

reference: ../tasks/relu.py
verdict: Disallowed
rule: launch-without-effect or output-without-launch or aten-share
why: nothing the kernel does reaches the output.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def idle_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < -1)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.relu(x)
        idle_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
