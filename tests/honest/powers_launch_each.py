"""More launches than are left out one at a time, and an output that depends on each alone.

reference: ../tasks/powers.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def power_kernel(x_ptr, out_ptr, k, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    power = x
    for _ in range(1, k):
        power = power * x
    tl.store(out_ptr + i, power, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        powers = [torch.empty_like(x) for _ in range(20)]
        for k, out in enumerate(powers, start=1):
            power_kernel[(triton.cdiv(x.numel(), 512),)](x, out, k, x.numel(), BLOCK=512)
        return powers
