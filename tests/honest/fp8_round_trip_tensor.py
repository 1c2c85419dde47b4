"""fp8 in memory: one kernel quantises into a float8_e4m3fn tensor, another reads it.

reference: ../tasks/fp8_round_trip.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def quantise_kernel(x_ptr, q_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0) * 4.0
    x = tl.minimum(tl.maximum(x, -448.0), 448.0)
    tl.store(q_ptr + i, x.to(q_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def restore_kernel(q_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, q.to(tl.float32) * 0.25, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        q = torch.empty(n, device=x.device, dtype=torch.float8_e4m3fn)
        out = torch.empty_like(x)
        quantise_kernel[(triton.cdiv(n, 1024),)](x, q, n, BLOCK=1024)
        restore_kernel[(triton.cdiv(n, 1024),)](q, out, n, BLOCK=1024)
        return out
