"""Divides by the sum of the weights.

reference: ../tasks/normalized_weights.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, w_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * width + c, mask=c < width, other=0.0)
    w = tl.load(w_ptr + row * width + c, mask=c < width, other=0.0)
    tl.store(out_ptr + row, tl.sum(x * w, axis=0) / tl.sum(w, axis=0))


class ModelNew(nn.Module):
    def forward(self, x, w):
        out = torch.empty(x.shape[0], device=x.device)
        mean_kernel[(x.shape[0],)](x, w, out, x.shape[1], BLOCK=64)
        return out
