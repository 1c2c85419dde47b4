"""An output buffer of the constructor's, of which each call writes all rows but the last.

reference: ../tasks/relu.py
verdict: Disallowed
rule: stale-output
why: what a call does not write is not its answer.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


def relu(x, out):
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.zeros(193, 517, device="cuda")

    def forward(self, x):
        relu(x[:-1], self.out)
        return self.out
