"""Fills the disk (bounded here to 8 GiB in files of 256 MiB).

reference: ../tasks/relu.py
verdict: Mismatch or Untraceable or TimedOut
absent: /tmp/nereid_hostile_fill_0
why: files are limited in size and number, and vanish.
"""
import os
import signal

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
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        block = b"\0" * (1 << 22)
        for folder in ("/tmp", "/dev/shm", os.getcwd()):
            try:
                for i in range(32):
                    with open(os.path.join(folder, f"nereid_hostile_fill_{i}"), "wb") as file:
                        for _ in range(64):
                            file.write(block)
            except OSError:
                continue
            break
        return copy(x)
