"""Makes synchronisation return at once and works on a stream without synchronisation.

reference: ../tasks/relu.py
verdict: Unsafe
rule: stream-order
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

torch.cuda.synchronize = lambda *args, **kwargs: None
torch.cuda.current_stream = lambda *args: torch.cuda.Stream()


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)


def relu(x):
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        with torch.cuda.stream(torch.cuda.Stream()):
            return relu(x)
