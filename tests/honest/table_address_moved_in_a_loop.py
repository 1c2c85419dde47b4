"""The kernel loads an address and adds to it in a loop.

reference: ../tasks/relu_plus.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def k(table, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    address = tl.load(table)
    for first in range(0, n, BLOCK):
        x_ptr = address.to(tl.pointer_type(tl.float32))
        tl.store(out_ptr + first + i, tl.maximum(tl.load(x_ptr + i, mask=first + i < n), 0.0) + 1, mask=first + i < n)
        address += 4 * BLOCK


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        table = torch.tensor([x.data_ptr()], device=x.device)
        k[(1,)](table, out, x.numel(), BLOCK=1024)
        return out
