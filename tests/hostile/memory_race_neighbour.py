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
def window_kernel(y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in tl.static_range(4):
        total += tl.load(y_ptr + i + k, mask=i + k < n, other=0.0)
    tl.store(y_ptr + i, total * 0.25, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        window_kernel[(triton.cdiv(y.numel(), 256),)](y, y.numel(), BLOCK=256)
        return y[:, :, : x.shape[2] - 3 : 2].contiguous()
