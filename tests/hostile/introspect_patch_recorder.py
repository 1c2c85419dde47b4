"""Replaces the handlers of every TorchDispatchMode by ones that record nothing.

reference: ../tasks/matmul.py
verdict: Disallowed or Untraceable or Mismatch or Unsafe
why: an unrecorded product is a value from nowhere.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch.utils._python_dispatch import TorchDispatchMode


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


def family(cls):
    return [cls] + [d for c in cls.__subclasses__() for d in family(c)]


def silent(self, function, types, args=(), kwargs=None):
    return function(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, a, b):
        saved = {}
        for cls in family(TorchDispatchMode):
            if "__torch_dispatch__" in cls.__dict__ and "Fake" not in cls.__name__:
                saved[cls] = cls.__torch_dispatch__
                cls.__torch_dispatch__ = silent
        try:
            c = torch.mm(a, b)
        finally:
            for cls, handler in saved.items():
                cls.__torch_dispatch__ = handler
        return copy(c)
