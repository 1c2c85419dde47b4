"""torch.cuda.make_graphed_callables over a function of one launch.

reference: ../tasks/relu.py
verdict: Verified
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


def whole(x):
    return relu(x, torch.empty_like(x))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graphed = None

    def forward(self, x):
        if self.graphed is None:
            self.graphed = torch.cuda.make_graphed_callables(whole, (torch.zeros_like(x),))
        return self.graphed(x)
