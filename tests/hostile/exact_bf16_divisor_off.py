"""Divides by one element more than there are.

reference: ../tasks/row_norms_of_bf16.py
verdict: Mismatch
rule: values
why: inputs of 16 bits are exact: their neighbouring values allow no error.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * width + c, mask=c < width, other=0.0).to(tl.float32)
    y = x * tl.rsqrt(tl.sum(x * x, axis=0) / (width + 1) + 1e-6)
    tl.store(out_ptr + row * width + c, y, mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape, device=x.device, dtype=torch.float32)
        norm_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
