"""Looks for a class Model in every imported module, and calls it.

reference: ../tasks/relu.py
verdict: Mismatch or Disallowed
rule: values or aten-compute or aten-share or no-launch or output-without-launch
why: the reference was never in this process.
"""
import sys

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


def the_reference():
    for module in list(sys.modules.values()):
        model = getattr(module, "Model", None)
        if isinstance(model, type) and issubclass(model, nn.Module) and hasattr(module, "get_inputs"):
            return model()
    return None


class ModelNew(nn.Module):
    def forward(self, x):
        model = the_reference()
        return copy(model(x) if model else x)
