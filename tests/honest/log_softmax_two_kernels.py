"""One kernel writes each row's log-sum-exp, a second one subtracts it.

reference: ../tasks/log_softmax.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def lse_kernel(x_ptr, high_ptr, log_sum_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=-float("inf"))
    high = tl.max(x, 0)
    tl.store(high_ptr + row, high)
    tl.store(log_sum_ptr + row, tl.log(tl.sum(tl.exp(x - high), 0)))


@triton.jit
def subtract_kernel(x_ptr, high_ptr, log_sum_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols)
    y = x - tl.load(high_ptr + row) - tl.load(log_sum_ptr + row)
    tl.store(out_ptr + row * cols + c, y, mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        high, log_sum = torch.empty(2, rows, device=x.device, dtype=torch.float32).unbind(0)
        out = torch.empty_like(x)
        lse_kernel[(rows,)](x, high, log_sum, cols, BLOCK=triton.next_power_of_2(cols))
        subtract_kernel[(rows, triton.cdiv(cols, 256))](x, high, log_sum, out, cols, BLOCK=256)
        return out
