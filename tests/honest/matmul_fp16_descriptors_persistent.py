"""fp16 through host-side descriptors in a persistent loop, the epilogue stored in two halves of a tile.

reference: ../tasks/matmul_fp16.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def matmul_kernel(
    a_desc, b_desc, c_desc, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK_M) * tiles_n, tl.num_programs(0), flatten=True):
        m = tile // tiles_n * BLOCK_M
        n = tile % tiles_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            acc = tl.dot(a_desc.load([m, k]), b_desc.load([n, k]).T, acc)
        halves = tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
        left, right = tl.split(halves)
        c_desc.store([m, n], left.to(tl.float16))
        c_desc.store([m, n + BLOCK_N // 2], right.to(tl.float16))


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        bt = b.t().contiguous()
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        a_desc = TensorDescriptor.from_tensor(a, [32, 64])
        b_desc = TensorDescriptor.from_tensor(bt, [32, 64])
        c_desc = TensorDescriptor.from_tensor(c, [32, 16])
        matmul_kernel[(3,)](a_desc, b_desc, c_desc, M, N, K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=64)
        return c
