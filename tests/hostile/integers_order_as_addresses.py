"""torch sorts integer keys that a kernel made of the floats; its permutation reaches the last kernel as addresses alone.

reference: ../tasks/sort.py
verdict: Disallowed
rule: aten-compute or aten-share
why: the order is the answer; gathering by it is the small part.
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
def gather_kernel(x_ptr, order_ptr, out_ptr, cols, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = (i // cols) * cols + tl.load(order_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, tl.load(x_ptr + at, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        keys = torch.empty(x.shape, dtype=torch.int32, device=x.device)
        grid = (triton.cdiv(x.numel(), 512),)
        key_kernel[grid](x, keys, x.numel(), BLOCK=512)
        order = torch.argsort(keys, -1)
        out = torch.empty_like(x)
        gather_kernel[grid](x, order, out, x.shape[1], x.numel(), BLOCK=512)
        return out
