"""Both streams read the input, and write outputs of their own.

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


def relu(x, out, n):
    relu_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x):
        flat, out = x.reshape(-1), torch.empty_like(x)
        middle = flat.numel() // 2
        low = torch.empty_like(flat[:middle])
        caller = torch.cuda.current_stream()
        self.side.wait_stream(caller)
        with torch.cuda.stream(self.side):
            relu(flat, low, middle)
        relu(flat[middle:], out.view(-1)[middle:], flat.numel() - middle)
        caller.wait_stream(self.side)
        relu(low, out, middle)
        return out
