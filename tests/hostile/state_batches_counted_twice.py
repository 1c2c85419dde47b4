"""Batch norm in training whose count of batches grows by two.

reference: ../tasks/batch_norm_training.py
verdict: Mismatch or Disallowed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(
    x_ptr, w_ptr, b_ptr, mean_ptr, var_ptr, count_ptr, out_ptr, batch, channels, plane, momentum, eps,
    BLOCK: tl.constexpr,
):
    c = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    size = batch * plane
    at = (i // plane * channels + c) * plane + i % plane
    x = tl.load(x_ptr + at, mask=i < size, other=0.0)
    mean = tl.sum(x, 0) / size
    d = tl.where(i < size, x - mean, 0.0)
    var = tl.sum(d * d, 0) / size
    tl.store(mean_ptr + c, tl.load(mean_ptr + c) * (1 - momentum) + mean * momentum)
    tl.store(var_ptr + c, tl.load(var_ptr + c) * (1 - momentum) + var * size / (size - 1) * momentum)
    y = d / tl.sqrt_rn(var + eps) * tl.load(w_ptr + c) + tl.load(b_ptr + c)
    tl.store(out_ptr + at, y, mask=i < size)
    if c == 0:
        tl.store(count_ptr, tl.load(count_ptr) + 2)


class ModelNew(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.bn = nn.BatchNorm2d(c)

    def forward(self, x):
        n, c, h, w = x.shape
        out, bn = torch.empty_like(x), self.bn
        norm_kernel[(c,)](
            x, bn.weight, bn.bias, bn.running_mean, bn.running_var, bn.num_batches_tracked, out, n, c, h * w,
            bn.momentum, bn.eps, BLOCK=triton.next_power_of_2(n * h * w),
        )
        return out
