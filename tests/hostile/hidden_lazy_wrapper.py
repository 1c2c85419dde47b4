"""Returns a wrapper subclass without storage, whose __torch_dispatch__ does the work on demand.

reference: ../tasks/softmax.py
verdict: Disallowed or Untraceable or Mismatch or Unsafe
why: an output is a plain tensor that the trace produced, or there is no output.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


class Lazy(torch.Tensor):
    @staticmethod
    def __new__(cls, source):
        lazy = torch.Tensor._make_wrapper_subclass(cls, source.shape, dtype=source.dtype, device=source.device)
        lazy.source = source
        return lazy

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        args = [torch.softmax(a.source, -1) if isinstance(a, cls) else a for a in args]
        return function(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, x):
        return Lazy(x)
