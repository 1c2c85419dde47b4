"""Rows are not read beyond the longest length that the task draws.

reference: ../tasks/mean_of_lengths.py
verdict: Mismatch
rule: values
why: lengths reach up to the row that they are compared with.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, l_ptr, out_ptr, T, D: tl.constexpr, B: tl.constexpr):
    b = tl.program_id(0)
    d = tl.arange(0, D)
    n = tl.load(l_ptr + b).to(tl.int32)
    acc = tl.zeros([D], tl.float32)
    for t in range(0, tl.minimum(n, 59)):
        acc += tl.load(x_ptr + (b * T + t) * D + d)
    tl.store(out_ptr + b * D + d, acc / tl.minimum(tl.maximum(n, 1), 59))


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        out = torch.empty(x.shape[0], x.shape[2], device=x.device)
        k[(x.shape[0],)](x, lengths, out, x.shape[1], x.shape[2], 16)
        return out
