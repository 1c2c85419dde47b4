"""Appends a line to torch's and Triton's own files.

reference: ../tasks/relu.py
verdict: Mismatch or Untraceable
why: outside its empty folder it can write nothing.
"""
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
    def forward(self, x):
        for package in (torch, triton):
            folder = os.path.dirname(package.__file__)
            for name in ("nereid_hostile.txt", "../nereid_hostile.pth"):
                try:
                    with open(os.path.join(folder, name), "w") as file:
                        file.write("# left by a candidate\n")
                except OSError:
                    pass
        return copy(x)
