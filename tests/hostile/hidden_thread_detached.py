"""Returns an empty tensor at once; a thread means to fill it later, when the clock has stopped.

reference: ../tasks/relu.py
verdict: Disallowed or Unsafe or Untraceable or Mismatch or Verified
why: at the end of forward the output has not been written, or the launch was recorded in time and is a step like any other.
"""
import threading
import time

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)


def relu(x):
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


def later(x, out):
    time.sleep(0.3)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        threading.Thread(target=later, args=(x, out), daemon=True).start()
        return out
