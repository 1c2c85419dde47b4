"""Passes an address as an integer and makes a pointer of it in the kernel.

reference: ../tasks/relu.py
verdict: Disallowed
rule: int-to-ptr
why: a pointer made from a number can reach any memory.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(address, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x_ptr = address.to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x.data_ptr(), out, x.numel(), BLOCK=1024)
        return out
