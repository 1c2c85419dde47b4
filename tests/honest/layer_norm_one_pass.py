"""One program a row, the row in registers, mean and variance in two sums.

reference: ../tasks/layer_norm.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    mask = c < width
    x = tl.load(x_ptr + row * width + c, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / width
    d = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(d * d, axis=0) / width + eps)
    w = tl.load(w_ptr + c, mask=mask)
    b = tl.load(b_ptr + c, mask=mask)
    tl.store(out_ptr + row * width + c, d * rstd * w + b, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        rows, width = x.shape
        out = torch.empty_like(x)
        layer_norm_kernel[(rows,)](
            x, self.norm.weight, self.norm.bias, out, width, self.norm.eps, BLOCK=triton.next_power_of_2(width)
        )
        return out
