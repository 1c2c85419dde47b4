"""Products of float32 in three parts of bf16: of a factor that has overflowed the parts are infinities of both signs.

reference: ../tasks/exp_linear.py
verdict: Verified
policy: strict
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def part(x):
    high = x.to(tl.bfloat16).to(tl.float32)
    low = x - high
    return high, tl.where(low == low, low, 0.0)


@triton.jit
def product(x, y):
    x0, x1 = part(x)
    x1, x2 = part(x1)
    y0, y1 = part(y)
    y1, y2 = part(y1)
    small = tl.dot(x1, y1, input_precision="ieee")
    small = tl.dot(x2, y0, small, input_precision="ieee")
    small = tl.dot(x0, y2, small, input_precision="ieee")
    small = tl.dot(x1, y0, small, input_precision="ieee")
    small = tl.dot(x0, y1, small, input_precision="ieee")
    return tl.dot(x0, y0, small, input_precision="ieee")


@triton.jit
def k(x_ptr, weight_ptr, bias_ptr, out_ptr):
    r, c, d = tl.arange(0, 64), tl.arange(0, 16), tl.arange(0, 32)
    x = tl.where(c[None, :] == 0, tl.exp(tl.load(x_ptr + r))[:, None], 0.0)
    weight = tl.where(c[:, None] == 0, tl.load(weight_ptr + d)[None, :], 0.0)
    y = product(x, weight) + tl.load(bias_ptr + d)[None, :]
    tl.store(out_ptr + r[:, None] * 32 + d[None, :], 1 / (1 + tl.exp(-y)))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 32)

    def forward(self, x):
        out = x.new_empty(64, 32)
        k[(1,)](x, self.linear.weight, self.linear.bias, out)
        return out
