"""Two streams write the same elements, and only the one that happens to run last writes what is asked for.

reference: ../tasks/relu.py
verdict: Unsafe
rule: race
why: Neither stream waits for the other, so which of the two numbers stays is chance on a GPU.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, first, last, BLOCK: tl.constexpr):
    offsets = first + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < last)
    tl.store(out_ptr + offsets, x * 0.5, mask=offsets < last)


@triton.jit
def relu_kernel(x_ptr, out_ptr, first, last, BLOCK: tl.constexpr):
    offsets = first + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < last)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0), mask=offsets < last)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()
        self.other = torch.cuda.Stream()

    def forward(self, x):
        out = torch.empty_like(x)
        n, caller = x.numel(), torch.cuda.current_stream()
        grid = (triton.cdiv(n, 1024),)
        for stream in (self.side, self.other):
            stream.wait_stream(caller)
        with torch.cuda.stream(self.side):
            scale_kernel[grid](x, out, 0, n, BLOCK=1024)
        with torch.cuda.stream(self.other):
            relu_kernel[grid](x, out, 0, n, BLOCK=1024)
        for stream in (self.side, self.other):
            caller.wait_stream(stream)
        return out
