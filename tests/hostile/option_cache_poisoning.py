"""Fills Triton's cache folder with a wrong kernel under every hash it can think of; the kernel is wrong too.

reference: ../tasks/relu.py
verdict: Mismatch or Untraceable
rule: values or python-error or not-traceable or sandbox-limit
why: compiled kernels are cached by content, by a process that the candidate cannot reach.
"""
import hashlib
import os

import torch
import torch.nn as nn
import triton
import triton.language as tl

HOMES = [os.environ.get("TRITON_CACHE_DIR"), os.path.expanduser("~/.triton/cache"), os.path.expanduser("~/.cache/nereid")]


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
        for home in filter(None, HOMES):
            for text in ("relu_kernel", "copy_kernel"):
                try:
                    folder = os.path.join(home, hashlib.sha256(text.encode()).hexdigest())
                    os.makedirs(folder, exist_ok=True)
                    with open(os.path.join(folder, text + ".cubin"), "wb") as file:
                        file.write(b"\x7fELF hostile")
                except OSError:
                    pass
        return copy(x)
