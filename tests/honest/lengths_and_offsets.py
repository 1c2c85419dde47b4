"""Rows of a packed tensor are summed, by lengths and offsets.

reference: ../tasks/lengths_and_offsets.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, l_ptr, o_ptr, out_ptr, N, D: tl.constexpr):
    b = tl.program_id(0)
    d = tl.arange(0, D)
    n = tl.load(l_ptr + b).to(tl.int32)
    o = tl.load(o_ptr + b)
    acc = tl.zeros([D], tl.float32)
    for t in range(0, n):
        acc += tl.load(x_ptr + (o + t) * D + d)
    tl.store(out_ptr + b * D + d, acc)


class ModelNew(nn.Module):
    def forward(self, x, lengths, offsets):
        out = torch.empty(lengths.shape[0], x.shape[1], device=x.device)
        k[(lengths.shape[0],)](x, lengths, offsets, out, x.shape[0], x.shape[1])
        return out
