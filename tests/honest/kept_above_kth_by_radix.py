"""The 20th largest of a row is found bit by bit in integers of its order.

reference: ../tasks/kept_above_kth.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def keep_kernel(x_ptr, out_ptr, cols, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=float("-inf")) + 0.0
    bits = x.to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64) + (1 << 31)
    key = tl.where(c < cols, key, -1)
    found = tl.zeros((), tl.int64)
    for i in range(32):
        trial = found | (tl.full((), 1, tl.int64) << (31 - i))
        found = tl.where(tl.sum((key >= trial).to(tl.int32), 0) >= K, trial, found)
    tl.store(out_ptr + row * cols + c, tl.where(key >= found, x, 0.0), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        keep_kernel[(x.shape[0],)](x, out, x.shape[1], K=20, BLOCK=512)
        return out
