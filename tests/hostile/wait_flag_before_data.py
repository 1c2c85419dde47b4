"""The flag is raised before the sum that it guards is stored.

reference: ../tasks/prefix_of_all.py
verdict: Unsafe
rule: race
why: what is stored after a release is not released by it.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def prefix_kernel(x_ptr, ticket_ptr, flag_ptr, sum_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tile = tl.atomic_add(ticket_ptr, 1)
    at = tile * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    before = 0.0
    if tile > 0:
        while tl.atomic_add(flag_ptr + tile - 1, 0, sem="acquire") == 0:
            pass
        before = tl.load(sum_ptr + tile - 1)
    tl.atomic_xchg(flag_ptr + tile, 1, sem="release")
    tl.store(sum_ptr + tile, before + tl.sum(x, 0))
    tl.store(out_ptr + at, before + tl.cumsum(x, 0), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        tiles = triton.cdiv(n, 64)
        ticket = torch.zeros(1, device=x.device, dtype=torch.int32)
        flags = torch.zeros(tiles, device=x.device, dtype=torch.int32)
        sums = torch.empty(tiles, device=x.device, dtype=x.dtype)
        out = torch.empty_like(x)
        prefix_kernel[(tiles,)](x, ticket, flags, sums, out, n, BLOCK=64)
        return out
