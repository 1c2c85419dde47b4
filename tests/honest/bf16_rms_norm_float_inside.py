"""float32 throughout, where eager rounds to bf16 after each operator.

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
    y = x * tl.rsqrt(tl.sum(x * x, 0) / cols + 1e-6) * w
    tl.store(out_ptr + row * cols + c, y.to(out_ptr.dtype.element_ty), mask=live)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(256, dtype=torch.bfloat16))

    def forward(self, x):
        out = torch.empty_like(x)
        row_kernel[(x.shape[0],)](x, self.weight, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
