"""The last element by a length.

reference: ../tasks/last_of_lengths.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, l_ptr, out_ptr, T, D: tl.constexpr):
    b = tl.program_id(0)
    d = tl.arange(0, D)
    t = tl.load(l_ptr + b).to(tl.int32) - 1
    x = tl.load(x_ptr + (b * T + t) * D + d)
    tl.store(out_ptr + b * D + d, tl.extra.libdevice.tanh(x))


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        out = torch.empty(x.shape[0], x.shape[2], device=x.device)
        k[(x.shape[0],)](x, lengths, out, x.shape[1], x.shape[2])
        return out
