"""A while loop in the kernel whose condition stays true (its result is used, or the compiler would drop it).

reference: ../tasks/relu.py
verdict: TimedOut or Verified
rule: time-limit
why: the executor counts time between iterations; where the front end drops a loop whose result is unused, the kernel is right.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    count = tl.program_id(0)
    while count >= 0:
        count = (count + 1) & 1023
    tl.store(out_ptr + i, tl.maximum(x, 0.0) + 0.0 * count, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
