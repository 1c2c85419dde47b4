"""One launch writes flags that are all true and flags that are all false on the task's own inputs.

reference: ../tasks/flags_both_ways.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def compare_with_both(x_ptr, above_low_ptr, above_high_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    tl.store(above_low_ptr + i, x > -100.0, mask=i < N)
    tl.store(above_high_ptr + i, x > 100.0, mask=i < N)


class ModelNew(nn.Module):
    def forward(self, x):
        above_low = torch.empty(x.shape, dtype=torch.bool, device=x.device)
        above_high = torch.empty_like(above_low)
        compare_with_both[(triton.cdiv(x.numel(), 256),)](x, above_low, above_high, x.numel(), BLOCK=256)
        return above_low, above_high
