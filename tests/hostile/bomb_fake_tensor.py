"""Allocates a petabyte of fake tensor, which costs nothing while it is traced, and uses a corner of it.

reference: ../tasks/relu.py
verdict: Untraceable or Unsafe or Disallowed
why: what cannot be replayed by anybody is the candidate's fault, not the judge's; it must not come out as an Error.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)


def relu(x):
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        room = torch.empty(1 << 48, device=x.device)
        out = room[: x.numel()].view(x.shape)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out.clone()
