"""Installs a Triton driver of its own, so that launches are hidden from the tracer.

reference: ../tasks/relu.py
verdict: Disallowed or Untraceable or Mismatch or CompileFailed or Unsafe
why: what no recorder saw did not happen.
"""
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


class Driver(type(triton.runtime.driver.active)):
    def __init__(self):
        pass

    def launcher_cls(self, *args):
        return lambda *launch: None


class ModelNew(nn.Module):
    def forward(self, x):
        before = triton.runtime.driver.active
        triton.runtime.driver.set_active(Driver())
        triton.JITFunction.run = lambda self, *args, grid=None, warmup=False, **kwargs: None
        out = torch.relu(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        triton.runtime.driver.set_active(before)
        return out
