"""Checks its inputs as careful authors do, and launches inside torch.cuda.device.

reference: ../tasks/add_relu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_relu(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask, other=0.0) + tl.load(y_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, tl.maximum(total, 0.0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, y):
        assert x.is_cuda and y.is_cuda, "the inputs must be on the GPU"
        assert x.device == y.device and x.shape == y.shape and x.dtype == torch.float32
        x, y = x.contiguous(), y.contiguous()
        with torch.cuda.device(x.device):
            out = torch.empty_like(x)
            add_relu[(triton.cdiv(x.numel(), 4096),)](x, y, out, x.numel(), BLOCK=4096, num_warps=8)
        return out
