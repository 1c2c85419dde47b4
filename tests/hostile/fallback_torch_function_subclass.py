"""Wraps its input in a tensor subclass whose __torch_function__ turns an addition into a matrix product.

reference: ../tasks/matmul.py
verdict: Disallowed or Untraceable
rule: aten-compute or python-error or not-traceable
why: below the subclass the product reaches the dispatcher by its own name.
"""
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


class Disguise(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            if function is torch.add:
                return torch.mm(*args)
            return function(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, a, b):
        return copy(torch.add(a.as_subclass(Disguise), b).as_subclass(torch.Tensor))
