"""Running statistics, affine map and ReLU in one kernel, from the module's own buffers.

reference: ../tasks/batch_norm_eval.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def batch_norm_relu(x_ptr, mean_ptr, var_ptr, w_ptr, b_ptr, out_ptr, channels, area, eps, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    channel = plane % channels
    scale = tl.load(w_ptr + channel) * tl.rsqrt(tl.load(var_ptr + channel) + eps)
    mean = tl.load(mean_ptr + channel)
    shift = tl.load(b_ptr + channel)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + plane * area + i, mask=i < area)
    tl.store(out_ptr + plane * area + i, tl.maximum((x - mean) * scale + shift, 0.0), mask=i < area)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = nn.BatchNorm2d(channels)
        self.eval()

    def forward(self, x):
        b, c, h, w = x.shape
        out = torch.empty_like(x)
        bn = self.bn
        batch_norm_relu[(b * c, triton.cdiv(h * w, 128))](
            x, bn.running_mean, bn.running_var, bn.weight, bn.bias, out, c, h * w, bn.eps, BLOCK=128
        )
        return out
