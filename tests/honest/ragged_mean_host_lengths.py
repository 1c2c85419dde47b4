"""Reads the integer lengths on the host (.item()) and launches once a sequence.

reference: ../tasks/ragged_mean.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, length, width, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for r in range(length):
        acc += tl.load(x_ptr + r * width + c, mask=c < width, other=0.0)
    tl.store(out_ptr + c, acc / length, mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        n, _, width = x.shape
        out = torch.empty((n, width), device=x.device, dtype=x.dtype)
        for i in range(n):
            mean_kernel[(1,)](x[i], out[i], lengths[i].item(), width, BLOCK=64)
        return out
