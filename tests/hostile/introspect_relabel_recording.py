"""Computes with torch, then renames the recorded product to a view.

reference: ../tasks/matmul.py
verdict: Disallowed or Untraceable or Mismatch or Unsafe
why: a trace that says otherwise is replayed as it says, and gives other values.
"""
import gc

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


def rename(old, new):
    for thing in gc.get_objects():
        try:
            if type(thing) is dict:
                for key, value in list(thing.items()):
                    if isinstance(value, str) and value in old:
                        thing[key] = new
            elif type(thing) is list:
                for i, value in enumerate(thing):
                    if isinstance(value, str) and value in old:
                        thing[i] = new
        except Exception:
            continue


class ModelNew(nn.Module):
    def forward(self, a, b):
        c = copy(torch.mm(a, b))
        rename(("aten::mm", "aten.mm.default", "aten::mm.default"), "aten::alias")
        return c
