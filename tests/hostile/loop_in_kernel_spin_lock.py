"""Spins on a lock that is never released.

reference: ../tasks/relu.py
verdict: TimedOut
rule: time-limit
why: a program that waits for no other program waits for ever.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, lock_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lock = torch.zeros(1, device=x.device, dtype=torch.int32)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, lock, out, x.numel(), BLOCK=1024)
        return out
