"""The kernel's work stands behind a condition on the program id that never holds.

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
    if tl.program_id(0) > 1000000:
        i = tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i), 0.0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.relu(x)
        idle_kernel[(4,)](x, out, x.numel(), BLOCK=128)
        return out
