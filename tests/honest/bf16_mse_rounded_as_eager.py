"""Each square is rounded to bf16.

reference: ../tasks/mse_bf16.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mse_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        d = tl.load(x_ptr + i).to(tl.float32) - tl.load(y_ptr + i).to(tl.float32)
        total += (d * d).to(tl.bfloat16).to(tl.float32)
    tl.store(out_ptr, (tl.sum(total, 0) / n).to(out_ptr.dtype.element_ty))


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty((), device=x.device, dtype=x.dtype)
        mse_kernel[(1,)](x, y, out, x.numel(), BLOCK=1024)
        return out
