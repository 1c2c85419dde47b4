"""Keeps a workspace that its first call makes larger, and answers in a tensor made anew.

reference: ../tasks/relu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.maximum(tl.load(x_ptr + offsets, mask=offsets < n), 0.0), mask=offsets < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.workspace = torch.empty(16, device="cuda")

    def forward(self, x):
        if self.workspace.numel() < x.numel():
            self.workspace = torch.empty(x.numel(), device=x.device)
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        copy_kernel[grid](x, self.workspace, x.numel(), BLOCK=1024)
        relu_kernel[grid](self.workspace, out, x.numel(), BLOCK=1024)
        return out
