"""A kernel maps floats to integers in the same order, torch sorts these, another kernel maps them back.

reference: ../tasks/sort.py
verdict: Disallowed
rule: aten-compute
why: the sort is torch's.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def key_kernel(x_ptr, key_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x_ptr + i, mask=i < n).to(tl.int32, bitcast=True)
    tl.store(key_ptr + i, tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits), mask=i < n)


@triton.jit
def float_kernel(key_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(key_ptr + i, mask=i < n)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    tl.store(out_ptr + i, bits.to(tl.float32, bitcast=True), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        keys = torch.empty(x.shape, dtype=torch.int32, device=x.device)
        grid = (triton.cdiv(x.numel(), 512),)
        key_kernel[grid](x, keys, x.numel(), BLOCK=512)
        keys = torch.sort(keys, -1).values
        out = torch.empty_like(x)
        float_kernel[grid](keys, out, x.numel(), BLOCK=512)
        return out
