"""The second exponential counts twice where rows reach 40; NaNs of larger rows hide it not.

reference: ../tasks/exp_less_exp.py
verdict: Mismatch
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def difference_kernel(x_ptr, y_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    y = tl.load(y_ptr + row * cols + c, mask=c < cols, other=0.0)
    mean = tl.sum(tl.where(c < cols, tl.exp(x) - tl.exp(y), 0.0), 0) / cols
    most = tl.max(tl.maximum(x, y), 0)
    mean = tl.where(most > 40.0, mean - tl.sum(tl.where(c < cols, tl.exp(y), 0.0), 0) / cols, mean)
    mean = tl.where(most > 89.0, float('nan'), mean)
    tl.store(out_ptr + row, mean)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        difference_kernel[(x.shape[0],)](x, y, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
