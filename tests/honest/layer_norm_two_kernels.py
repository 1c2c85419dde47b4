"""Statistics in one kernel, the affine map in another; its own parameters instead of an nn.LayerNorm.

reference: ../tasks/layer_norm.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def statistics_kernel(x_ptr, mean_ptr, rstd_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, width, BLOCK):
        c = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * width + c, mask=c < width, other=0.0)
    mean = tl.sum(total, 0) / width
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, width, BLOCK):
        c = start + tl.arange(0, BLOCK)
        d = tl.load(x_ptr + row * width + c, mask=c < width, other=0.0) - mean
        total += tl.where(c < width, d * d, 0.0)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, 1.0 / tl.sqrt(tl.sum(total, 0) / width + eps))


@triton.jit
def affine_kernel(x_ptr, mean_ptr, rstd_ptr, w_ptr, b_ptr, out_ptr, n, width, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    row, c = i // width, i % width
    x = tl.load(x_ptr + i, mask=mask)
    mean = tl.load(mean_ptr + row, mask=mask)
    rstd = tl.load(rstd_ptr + row, mask=mask)
    w = tl.load(w_ptr + c, mask=mask)
    b = tl.load(b_ptr + c, mask=mask)
    tl.store(out_ptr + i, (x - mean) * rstd * w + b, mask=mask)


class Norm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x):
        rows, width = x.shape
        mean = torch.empty(rows, device=x.device, dtype=torch.float32)
        rstd = torch.empty_like(mean)
        out = torch.empty_like(x)
        statistics_kernel[(rows,)](x, mean, rstd, width, self.eps, BLOCK=128)
        grid = (triton.cdiv(x.numel(), 1024),)
        affine_kernel[grid](x, mean, rstd, self.weight, self.bias, out, x.numel(), width, BLOCK=1024)
        return out


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = Norm(width)

    def forward(self, x):
        return self.norm(x)
