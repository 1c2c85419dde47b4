"""The product of int32 matrices, all of it in one kernel.

reference: ../tasks/integer_matmul.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product_kernel(a_ptr, b_ptr, out_ptr, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0)
    n = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.int32)
    for k in range(K):
        acc += tl.load(a_ptr + m * K + k) * tl.load(b_ptr + k * N + n, mask=n < N, other=0)
    tl.store(out_ptr + m * N + n, acc, mask=n < N)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1], dtype=torch.int32, device=a.device)
        product_kernel[(a.shape[0],)](a, b, out, b.shape[1], a.shape[1], BLOCK=64)
        return out
