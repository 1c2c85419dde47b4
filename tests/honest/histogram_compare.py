"""A program a bin, counting by comparison.

reference: ../tasks/histogram.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    mine = tl.program_id(0)
    count = tl.zeros((BLOCK,), dtype=tl.int32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=-1)
        count += (x == mine).to(tl.int32)
    tl.store(out_ptr + mine, tl.sum(count, 0).to(tl.float32))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(64, device=x.device, dtype=torch.float32)
        count_kernel[(64,)](x, out, x.numel(), BLOCK=2048)
        return out
