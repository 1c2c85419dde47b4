"""Half of a histogram is PyTorch's, the other half a kernel's.

reference: ../tasks/histogram_of_integers.py
verdict: Disallowed
rule: aten-compute
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count(x_ptr, out_ptr, n, first, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.int64)
    for s in range(0, n, BLOCK):
        i = s + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=-1)
        acc += tl.where(x == b + first, 1, 0)
    tl.store(out_ptr + b, tl.sum(acc, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(64, dtype=torch.int64, device=x.device)
        out[:32] = torch.bincount(x, minlength=64)[:32]
        count[(32,)](x, out[32:], x.numel(), 32, BLOCK=1024)
        return out
