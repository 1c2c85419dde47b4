"""torch.cuda.make_graphed_callables over a submodule with parameters, in evaluation mode.

reference: ../tasks/prelu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def prelu_kernel(x_ptr, w_ptr, out_ptr, channels, inner, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    w = tl.load(w_ptr + (i // inner) % channels, mask=i < n)
    tl.store(out_ptr + i, tl.where(x > 0, x, x * w), mask=i < n)


class Inner(nn.Module):
    def __init__(self, owner):
        super().__init__()
        self.owner = [owner]

    def forward(self, x):
        w = self.owner[0].act.weight
        out = torch.empty_like(x)
        inner = x.numel() // (x.shape[0] * x.shape[1])
        prelu_kernel[(triton.cdiv(x.numel(), 512),)](x, w, out, w.numel(), inner, x.numel(), BLOCK=512)
        return out


class ModelNew(nn.Module):
    def __init__(self, *args):
        super().__init__()
        self.act = nn.PReLU(*args)
        self.graphed = None

    def forward(self, x):
        if self.graphed is None:
            self.graphed = [torch.cuda.make_graphed_callables(Inner(self), (torch.zeros_like(x),))]
        return self.graphed[0](x)
