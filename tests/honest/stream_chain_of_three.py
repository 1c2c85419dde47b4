"""The third stream waits for the second, that for the first: the caller waits for the third alone.

reference: ../tasks/relu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0), mask=offsets < n)


def relu(x, out):
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()
        self.other = torch.cuda.Stream()

    def forward(self, x):
        half, out = torch.empty_like(x), torch.empty_like(x)
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            relu(x, half)
        self.other.wait_stream(self.side)
        with torch.cuda.stream(self.other):
            relu(half, out)
        torch.cuda.current_stream().wait_stream(self.other)
        return out
