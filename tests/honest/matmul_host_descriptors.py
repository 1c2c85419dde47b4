"""Tensor descriptors made on the host, passed as arguments.

reference: ../tasks/matmul.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def matmul_kernel(a_desc, b_desc, c_desc, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc, input_precision="ieee")
    c_desc.store([m, n], acc)


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        bm, bn, bk = 32, 32, 32
        a_desc = TensorDescriptor(a, [M, K], [K, 1], [bm, bk])
        b_desc = TensorDescriptor.from_tensor(b, [bk, bn])
        c_desc = TensorDescriptor.from_tensor(c, [bm, bn])
        grid = (triton.cdiv(M, bm), triton.cdiv(N, bn))
        matmul_kernel[grid](a_desc, b_desc, c_desc, K, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk)
        return c
