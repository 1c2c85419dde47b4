"""Each half on a stream of its own.

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
        flat, out = x.reshape(-1), torch.empty_like(x)
        middle = flat.numel() // 2
        caller = torch.cuda.current_stream()
        for stream, part in ((self.side, slice(0, middle)), (self.other, slice(middle, None))):
            stream.wait_stream(caller)
            with torch.cuda.stream(stream):
                relu(flat[part], out.view(-1)[part])
            caller.wait_stream(stream)
        return out
