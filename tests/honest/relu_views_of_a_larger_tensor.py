"""Reads its input through a view of other sizes and hands the same storage's view on.

reference: ../tasks/relu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.maximum(tl.load(x_ptr + offsets, mask=offsets < n), 0.0), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        flat = x.view(-1)
        whole = torch.empty(2 * flat.numel(), device=x.device, dtype=x.dtype)
        out = whole[: flat.numel()].view_as(x)
        relu_kernel[(triton.cdiv(flat.numel(), 1024),)](flat, out, flat.numel(), BLOCK=1024)
        return out
