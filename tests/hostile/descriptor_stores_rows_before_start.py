"""Rows are taken from the last to the first in whole blocks, so the last block begins before the tensor.

reference: ../tasks/relu_wide.py
verdict: Unsafe
rule: out-of-bounds
why: a GPU's bulk store from a negative coordinate traps, of the first dimension, too.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    out_desc = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    m = M - (tl.program_id(0) + 1) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    out_desc.store([m, n], tl.maximum(x_desc.load([m, n]), 0.0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        M, N = x.shape
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device=x.device, dtype=torch.int8))
        relu_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 64))](x, out, M, N, BLOCK_M=32, BLOCK_N=64)
        return out
