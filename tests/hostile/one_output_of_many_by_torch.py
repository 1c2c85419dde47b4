"""Of twenty outputs one is PyTorch's; a launch that adds nothing to it lies on its way, among more launches
than are left out one at a time.

reference: ../tasks/powers.py
verdict: Disallowed
rule: launch-without-effect
policy: hybrid
why: leaving out even all launches does not change that output.
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


@triton.jit
def idle_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.atomic_add(out_ptr + i, x * 0.0, mask=(i < n) & (x * 0.0 > 1.0))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        powers = [torch.empty_like(x) for _ in range(20)]
        for k, out in enumerate(powers, start=1):
            if k == 10:
                torch.pow(x, 10, out=out)
                idle_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
                continue
            power_kernel[(triton.cdiv(x.numel(), 512),)](x, out, k, x.numel(), BLOCK=512)
        return powers
