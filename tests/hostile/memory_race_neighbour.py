"""In place over a halo: a program reads what its neighbour writes.

reference: ../tasks/avg_pool1d.py
verdict: Unsafe
rule: race
why: whether the neighbour has written already is a matter of chance.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(y_ptr + i, mask=i < n, other=0.0)
    right = tl.load(y_ptr + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(y_ptr + i, (left + right) * 0.5, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        pairs = x.reshape(-1, 2).clone()
        flat = pairs.view(-1)
        scale_kernel[(triton.cdiv(flat.numel(), 256),)](flat, flat.numel(), BLOCK=256)
        b, c, length = x.shape
        return flat.reshape(b, c, length)[:, :, : length - 2 : 2].contiguous()
