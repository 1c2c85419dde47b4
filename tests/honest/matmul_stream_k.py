"""Stream-K: programs share all blocks of K evenly; a tile that several share is added up by atomics.

reference: ../tasks/matmul.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def stream_kernel(a_ptr, b_ptr, c_ptr, M, N, K, each, total, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    first = pid * each
    last = tl.minimum(first + each, total)
    per_tile = tl.cdiv(K, BLOCK)
    across = tl.cdiv(N, BLOCK)
    at = first
    while at < last:
        tile = at // per_tile
        end = tl.minimum(last, (tile + 1) * per_tile)
        m = tile // across * BLOCK + tl.arange(0, BLOCK)
        n = tile % across * BLOCK + tl.arange(0, BLOCK)
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        for i in range(at - tile * per_tile, end - tile * per_tile):
            k = i * BLOCK + tl.arange(0, BLOCK)
            a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
            b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
            acc = tl.dot(a, b, acc, input_precision="ieee")
        out = c_ptr + m[:, None] * N + n[None, :]
        mask = (m[:, None] < M) & (n[None, :] < N)
        if end - at == per_tile:
            tl.store(out, acc, mask=mask)
        else:
            tl.atomic_add(out, acc, mask=mask, sem="relaxed")
        at = end


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        block, programs = 32, 14
        c = torch.zeros(M, N, device=a.device, dtype=a.dtype)
        total = triton.cdiv(M, block) * triton.cdiv(N, block) * triton.cdiv(K, block)
        stream_kernel[(programs,)](a, b, c, M, N, K, triton.cdiv(total, programs), total, BLOCK=block)
        return c
