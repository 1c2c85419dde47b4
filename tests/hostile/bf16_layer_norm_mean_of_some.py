"""Mean and variance of the first 256 of 320 columns.

reference: ../tasks/layer_norm_bf16.py
verdict: Mismatch
rule: values
why: statistics of a sample.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, w_ptr, b_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    live = c < cols
    x = tl.load(x_ptr + row * cols + c, mask=live, other=0).to(tl.float32)
    some = c < 256
    mean = tl.sum(tl.where(some, x, 0), 0) / 256
    d = tl.where(live, x - mean, 0)
    var = tl.sum(tl.where(some, d * d, 0), 0) / 256
    w = tl.load(w_ptr + c, mask=live, other=0).to(tl.float32)
    b = tl.load(b_ptr + c, mask=live, other=0).to(tl.float32)
    y = d * tl.rsqrt(var + 1e-5) * w + b
    tl.store(out_ptr + row * cols + c, y.to(out_ptr.dtype.element_ty), mask=live)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(320).to(torch.bfloat16)

    def forward(self, x):
        out = torch.empty_like(x)
        row_kernel[(x.shape[0],)](x, self.norm.weight, self.norm.bias, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
