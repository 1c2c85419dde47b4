"""A compiled kernel is launched on the handle of a side stream.

reference: ../tasks/relu.py
verdict: Unsafe
rule: stream-order
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
        self.kernel = None

    def forward(self, x):
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024), 1, 1)
        if self.kernel is None:
            self.kernel = relu_kernel.warmup(x, out, x.numel(), BLOCK=1024, grid=grid)
        self.kernel[grid](x, out, x.numel(), stream=self.side.cuda_stream)
        return out
