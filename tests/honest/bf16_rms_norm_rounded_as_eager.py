"""Rounds to bf16 wherever eager does: the row's scale, too.

reference: ../tasks/rms_norm_eager_bf16.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, w_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    live = c < cols
    x = tl.load(x_ptr + row * cols + c, mask=live, other=0).to(tl.float32)
    w = tl.load(w_ptr + c, mask=live, other=0).to(tl.float32)
    square = (x * x).to(tl.bfloat16).to(tl.float32)
    mean = (tl.sum(square, 0) / cols).to(tl.bfloat16).to(tl.float32)
    shifted = (mean + 1e-6).to(tl.bfloat16).to(tl.float32)
    scale = tl.rsqrt(shifted).to(tl.bfloat16).to(tl.float32)
    y = (x * scale).to(tl.bfloat16).to(tl.float32) * w
    tl.store(out_ptr + row * cols + c, y.to(out_ptr.dtype.element_ty), mask=live)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(256, dtype=torch.bfloat16))

    def forward(self, x):
        out = torch.empty_like(x)
        row_kernel[(x.shape[0],)](x, self.weight, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
