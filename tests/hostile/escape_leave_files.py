"""Leaves files, links, sockets and pipes in every folder that is usually writable.

reference: ../tasks/relu.py
verdict: Mismatch or Untraceable
absent: /tmp/nereid_hostile_left /var/tmp/nereid_hostile_left /dev/shm/nereid_hostile_left
why: what it writes is gone with its folder.
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
        for folder in ("/tmp", "/var/tmp", "/dev/shm", os.getcwd(), os.path.expanduser("~")):
            path = os.path.join(folder, "nereid_hostile_left")
            for make in (
                lambda: open(path, "w").close(),
                lambda: os.symlink("/etc/passwd", path + "_link"),
                lambda: os.mkfifo(path + "_pipe"),
                lambda: os.chmod(folder, 0o777),
            ):
                try:
                    make()
                except OSError:
                    pass
        return copy(x)
