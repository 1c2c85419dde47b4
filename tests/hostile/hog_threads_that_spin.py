"""Starts threads that compute for ever, and waits for none: all of the machine's cores would be its own.

reference: ../tasks/relu.py
verdict: Untraceable or TimedOut or Verified
seconds: 90
why: it has one core, and its limit is in processor time.
"""
import threading

import torch
import torch.nn as nn
import triton
import triton.language as tl


def spin():
    while True:
        pass


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.maximum(tl.load(x_ptr + offsets, mask=offsets < n), 0.0), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(16):
            threading.Thread(target=spin, daemon=True).start()
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
