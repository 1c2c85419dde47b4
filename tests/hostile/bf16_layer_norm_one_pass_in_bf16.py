"""A bf16 layer norm whose sum of squares is rounded to bf16 in every eighth.

reference: ../tasks/layer_norm_bf16.py
verdict: Mismatch
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    mean = 0.0
    squares = 0.0
    for start in range(0, width, 64):
        j = start + tl.arange(0, 64)
        p = tl.load(x_ptr + row * width + j, mask=j < width, other=0.0).to(tl.float32)
        mean += tl.sum(p, 0)
        squares = (squares + tl.sum(p * p, 0)).to(tl.bfloat16).to(tl.float32)
    mean = mean / width
    rstd = 1 / tl.sqrt_rn(squares / width - mean * mean + eps)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * width + i, mask=i < width, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + i, mask=i < width).to(tl.float32)
    b = tl.load(b_ptr + i, mask=i < width).to(tl.float32)
    tl.store(out_ptr + row * width + i, ((x - mean) * rstd * w + b).to(tl.bfloat16), mask=i < width)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(320).to(torch.bfloat16)

    def forward(self, x):
        out = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](x, self.norm.weight, self.norm.bias, out, x.shape[1], self.norm.eps, BLOCK=512)
        return out
