"""Hands the two halves to the kernel as views with offsets; strides are arguments.

reference: ../tasks/swiglu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, cols, in_stride, out_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = c < cols
    gate = tl.load(gate_ptr + row * in_stride + c, mask=mask, other=0.0)
    up = tl.load(up_ptr + row * in_stride + c, mask=mask, other=0.0)
    tl.store(out_ptr + row * out_stride + c, silu(gate) * up, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        gate, up = x.chunk(2, dim=-1)
        rows, cols = gate.shape
        out = torch.empty((rows, cols), device=x.device, dtype=x.dtype)
        grid = (rows, triton.cdiv(cols, 256))
        swiglu_kernel[grid](gate, up, out, cols, gate.stride(0), out.stride(0), BLOCK=256)
        return out
