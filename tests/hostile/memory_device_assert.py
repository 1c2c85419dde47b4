"""A device_assert that does not hold for negative values.

reference: ../tasks/relu.py
verdict: Unsafe
rule: assertion
why: the kernel says itself that its premise fails.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit(debug=True)
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.device_assert(x >= 0.0, "the input is not negative")
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
