"""A graphed callable whose argument is a dummy: its function reads the first call's input from a closure.

reference: ../tasks/relu.py
verdict: Disallowed
rule: reuse-of-inputs or stale-output or constant-output
why: what is copied into the static argument is never read.
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
        self.graphed = None

    def forward(self, x):
        if self.graphed is None:
            self.graphed = torch.cuda.make_graphed_callables(lambda dummy: relu(x, torch.empty_like(dummy)), (torch.zeros_like(x),))
        return self.graphed(x).clone()
