"""Compares the keys in the kernel; sizes come from the shape.

reference: ../tasks/equal_pairs.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def equal_kernel(keys_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    a = tl.load(keys_ptr + row)
    b = tl.load(keys_ptr + c, mask=c < n)
    tl.store(out_ptr + row * n + c, tl.where(a == b, 1.0, 0.0), mask=c < n)


class ModelNew(nn.Module):
    def forward(self, keys):
        n = keys.shape[0]
        out = torch.empty(n, n, device=keys.device)
        equal_kernel[(n,)](keys, out, n, BLOCK=64)
        return out
