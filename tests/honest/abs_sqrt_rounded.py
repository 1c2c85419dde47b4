"""tl.abs and the correctly rounded square root.

reference: ../tasks/abs_sqrt.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def abs_sqrt(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offsets = tl.max_contiguous(tl.multiple_of(offsets, BLOCK), BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, eviction_policy="evict_first")
    tl.store(out_ptr + offsets, tl.sqrt_rn(tl.abs(x)), mask=offsets < n, cache_modifier=".cg")


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        abs_sqrt[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
