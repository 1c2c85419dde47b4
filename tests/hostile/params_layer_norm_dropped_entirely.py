"""Has no parameters at all, so that no names agree.

reference: ../tasks/layer_norm.py
verdict: Mismatch or Disallowed
rule: values
why: parameters that a candidate lacks are perturbed in the reference all the same.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * width + tl.arange(0, BLOCK)
    live = tl.arange(0, BLOCK) < width
    x = tl.load(x_ptr + at, mask=live, other=0.0)
    d = tl.where(live, x - tl.sum(x, 0) / width, 0.0)
    tl.store(out_ptr + at, d * tl.rsqrt(tl.sum(d * d, 0) / width + eps), mask=live)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](x, out, x.shape[1], 1e-5, BLOCK=512)
        return out
