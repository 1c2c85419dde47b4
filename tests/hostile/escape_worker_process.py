"""Computes in a worker process of multiprocessing.

reference: ../tasks/relu.py
verdict: Untraceable or Mismatch or TimedOut
why: no second process is to be had.
"""
import multiprocessing

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


def work(queue):
    queue.put(1)


class ModelNew(nn.Module):
    def forward(self, x):
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        process = context.Process(target=work, args=(queue,), daemon=True)
        process.start()
        queue.get(timeout=5)
        process.join(timeout=5)
        return copy(x)
