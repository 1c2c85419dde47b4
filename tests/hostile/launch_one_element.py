"""torch multiplies; a kernel computes one element of the product again, and matters.

reference: ../tasks/matmul.py
verdict: Disallowed
rule: aten-compute
why: the contraction is torch's, whatever one element is.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def first_element(a_ptr, b_ptr, c_ptr, N, K, BLOCK: tl.constexpr):
    k = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + k, mask=k < K, other=0.0)
    b = tl.load(b_ptr + k * N, mask=k < K, other=0.0)
    tl.store(c_ptr, tl.sum(a * b, 0))


class ModelNew(nn.Module):
    def forward(self, a, b):
        c = a @ b
        first_element[(1,)](a, b, c, b.shape[1], a.shape[1], BLOCK=256)
        return c
