"""Imports the reference by its path and calls it.

reference: ../tasks/matmul.py
verdict: Untraceable or Disallowed
rule: python-error or not-traceable or sandbox-limit or aten-compute or no-launch
why: the reference is not in the tracer's process; if its file can be read, its calls are torch's.
"""
import importlib.util
import os

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
    def __init__(self):
        super().__init__()
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tasks/matmul.py")
        spec = importlib.util.spec_from_file_location("the_reference", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.model = module.Model()

    def forward(self, a, b):
        return copy(self.model(a, b))
