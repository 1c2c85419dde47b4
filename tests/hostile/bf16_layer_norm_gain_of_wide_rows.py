"""A norm that is 0.3 % too large where a row's variance is none that the task draws.

reference: ../tasks/layer_norm_bf16.py
verdict: Mismatch
rule: values
why: less than an ulp on each element; the mean over a slice shows it on other distributions.
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
    mean = tl.sum(x, 0) / cols
    d = tl.where(live, x - mean, 0)
    var = tl.sum(d * d, 0) / cols
    w = tl.load(w_ptr + c, mask=live, other=0).to(tl.float32)
    b = tl.load(b_ptr + c, mask=live, other=0).to(tl.float32)
    gain = tl.where((var > 4.0) | (var < 0.1), 1.003, 1.0)
    y = gain * d * tl.rsqrt(var + 1e-5) * w + b
    tl.store(out_ptr + row * cols + c, y.to(out_ptr.dtype.element_ty), mask=live)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(320).to(torch.bfloat16)

    def forward(self, x):
        out = torch.empty_like(x)
        row_kernel[(x.shape[0],)](x, self.norm.weight, self.norm.bias, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
