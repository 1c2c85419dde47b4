"""The last element is cleared on another stream than the one that writes it.

reference: ../tasks/relu.py
verdict: Unsafe
rule: race
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


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
        for stream in (self.side, self.other):
            stream.wait_stream(caller)
        with torch.cuda.stream(self.side):
            out.view(-1)[n - 1 :].zero_()
        with torch.cuda.stream(self.other):
            relu_kernel[(triton.cdiv(n, 1024),)](x, out, 0, n, BLOCK=1024)
        for stream in (self.side, self.other):
            caller.wait_stream(stream)
        return out
