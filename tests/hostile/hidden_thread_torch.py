"""Lets a thread call torch, where no dispatch mode of the main thread is active.

reference: ../tasks/softmax.py
verdict: Disallowed or Untraceable or Mismatch or Unsafe
why: work that the recorder did not see has no result that the replay could use.
"""
import threading

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


class ModelNew(nn.Module):
    def forward(self, x):
        result = []
        worker = threading.Thread(target=lambda: result.append(torch.softmax(x, dim=-1)))
        worker.start()
        worker.join()
        return copy(result[0])
