"""A whole block of integers made pointers at once.

reference: ../tasks/relu.py
verdict: Disallowed
rule: int-to-ptr
why: tensors of pointers made from numbers are pointers made from numbers.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    address = (x_ptr + i).to(tl.int64)
    there = tl.cast(address + 0, tl.pointer_type(tl.float32), bitcast=True)
    tl.store(out_ptr + i, tl.maximum(tl.load(there, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
