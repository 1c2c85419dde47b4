"""Takes the reference's configuration, a class that it has copied, and uses its property.

reference: ../tasks/extremes_configured.py
verdict: Verified
"""
import dataclasses

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def min_max_kernel(x_ptr, low_ptr, high_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = x_ptr + row * cols + c
    tl.store(low_ptr + row, tl.min(tl.load(x, mask=c < cols, other=float("inf")), 0))
    tl.store(high_ptr + row, tl.max(tl.load(x, mask=c < cols, other=float("-inf")), 0))


def min_max(x):
    rows, cols = x.shape
    low = torch.empty(rows, device=x.device, dtype=x.dtype)
    high = torch.empty_like(low)
    min_max_kernel[(rows,)](x, low, high, cols, BLOCK=triton.next_power_of_2(cols))
    return low, high


@dataclasses.dataclass(frozen=True)
class Config:
    scale: float
    shift: float = 0.25

    @property
    def both(self):
        return self.scale + self.shift


@triton.jit
def scaled_kernel(low_ptr, high_ptr, low_scale, high_scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(low_ptr + i, tl.load(low_ptr + i, mask=i < n) * low_scale, mask=i < n)
    tl.store(high_ptr + i, tl.load(high_ptr + i, mask=i < n) * high_scale, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config

    def forward(self, x):
        low, high = min_max(x)
        scaled_kernel[(triton.cdiv(low.numel(), 64),)](low, high, self.config.both, self.config.scale, low.numel(), BLOCK=64)
        return {"low": low, "high": high}
