"""Two streams write one tensor, each the part that its offsets say.

reference: ../tasks/relu.py
verdict: Verified
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
        for stream, first, last in ((self.side, 0, n // 2), (self.other, n // 2, n)):
            stream.wait_stream(caller)
            with torch.cuda.stream(stream):
                relu_kernel[(triton.cdiv(last - first, 1024),)](x, out, first, last, BLOCK=1024)
        for stream in (self.side, self.other):
            caller.wait_stream(stream)
        return out
