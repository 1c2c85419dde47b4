"""Launches from a thread and waits for it.

reference: ../tasks/relu.py
verdict: Verified or Untraceable
rule: python-error or not-traceable or sandbox-limit
why: the launch is recorded in its place, or threads are refused.
"""
import threading

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


class ModelNew(nn.Module):
    def forward(self, x):
        result = []
        worker = threading.Thread(target=lambda: result.append(relu(x)))
        worker.start()
        worker.join()
        return result[0]
