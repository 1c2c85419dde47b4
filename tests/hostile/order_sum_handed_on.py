"""Programs hand a sum on through an exchange; what two take at once is lost.

reference: ../tasks/total.py
verdict: Unsafe or Mismatch
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0)
    taken = tl.atomic_xchg(out_ptr, 0.0)
    tl.atomic_xchg(out_ptr, taken + s)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(1, device=x.device, dtype=x.dtype)
        total_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
