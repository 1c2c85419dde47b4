"""Makes fifty thousand empty files.

reference: ../tasks/relu.py
verdict: Mismatch or Untraceable or TimedOut
absent: /tmp/nereid_hostile_small
why: whatever it makes vanishes with its folder.
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
        for folder in ("/tmp", os.getcwd()):
            try:
                home = os.path.join(folder, "nereid_hostile_small")
                os.makedirs(home)
                for i in range(50000):
                    os.close(os.open(os.path.join(home, str(i)), os.O_CREAT | os.O_WRONLY))
            except OSError:
                pass
        return copy(x)
