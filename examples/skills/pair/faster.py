import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def fused_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    tl.store(y_ptr + at, tl.maximum(x * 3.0, 0.0) + 0.25, mask=at < count)


class ModelNew(nn.Module):
    def forward(self, x):
        count = x.numel()
        y = torch.empty_like(x)
        fused_kernel[(triton.cdiv(count, 256),)](x, y, count, BLOCK=256)
        x = y
        return x
