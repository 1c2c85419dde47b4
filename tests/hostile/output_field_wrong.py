"""Returns the right dataclass, the largest of each row also in place of the smallest.

reference: ../tasks/extremes_dataclass.py
verdict: Mismatch
rule: values
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


@dataclasses.dataclass
class Extremes:
    low: torch.Tensor
    high: torch.Tensor


class ModelNew(nn.Module):
    def forward(self, x):
        low, high = min_max(x)
        return Extremes(high.clone(), high)
