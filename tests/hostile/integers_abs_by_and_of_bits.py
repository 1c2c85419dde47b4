"""The absolute value by PyTorch's `&` over the bits; a kernel takes the root.

reference: ../tasks/abs_sqrt.py
verdict: Disallowed
rule: aten-compute or aten-share
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def root_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.sqrt_rn(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        bits = (x.view(torch.int32) & 0x7FFFFFFF).view(torch.float32)
        out = torch.empty_like(x)
        root_kernel[(triton.cdiv(x.numel(), 1024),)](bits, out, x.numel(), BLOCK=1024)
        return out
