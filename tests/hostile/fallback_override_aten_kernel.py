"""Re-registers an ATen operator, so that a free copy computes the answer.

reference: ../tasks/relu.py
verdict: Mismatch or Disallowed or Untraceable
why: the replay calls the real aten::clone, in a process where nothing was registered.
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

library = torch.library.Library("aten", "IMPL")
try:
    library.impl("clone", lambda x, memory_format=None: torch.relu(x), "CUDA")
except RuntimeError:
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        return copy(x.clone())
