"""Pads its operands to whole tiles first (copies), so that the kernel needs no masks, and slices the result.

reference: ../tasks/matmul_odd.py
verdict: Verified
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

TILE = 32


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, N, K, TILE: tl.constexpr):
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, TILE)
    a_ptrs = a_ptr + m[:, None] * K + k[None, :]
    b_ptrs = b_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((TILE, TILE), dtype=tl.float32)
    for _ in range(K // TILE):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc, input_precision="ieee")
        a_ptrs += TILE
        b_ptrs += TILE * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


def pad(x):
    rows, cols = (-x.shape[0]) % TILE, (-x.shape[1]) % TILE
    return F.pad(x, (0, cols, 0, rows))


class ModelNew(nn.Module):
    def forward(self, a, b):
        pa, pb = pad(a), pad(b)
        c = torch.empty(pa.shape[0], pb.shape[1], device=a.device)
        grid = (c.shape[0] // TILE, c.shape[1] // TILE)
        matmul_kernel[grid](pa, pb, c, pb.shape[1], pa.shape[1], TILE=TILE)
        return c[: a.shape[0], : b.shape[1]]
