"""One flat buffer that grows when a call needs more, and is overwritten by each.

reference: ../tasks/twice_and_one.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dbl(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2 + 1, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buf = torch.empty(0)

    def forward(self, x):
        if self.buf.numel() < x.numel():
            self.buf = torch.empty(x.numel(), device=x.device, dtype=x.dtype)
        out = self.buf[: x.numel()].view_as(x)
        dbl[(1,)](x, out, x.numel(), BLOCK=1024)
        return out
