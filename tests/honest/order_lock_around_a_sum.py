"""A lock guards a sum that plain loads and stores change.

reference: ../tasks/total.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total_kernel(x_ptr, lock_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(out_ptr, tl.load(out_ptr) + s)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        lock = torch.zeros(1, device=x.device, dtype=torch.int32)
        out = torch.zeros(1, device=x.device, dtype=x.dtype)
        total_kernel[(x.shape[0],)](x, lock, out, x.shape[1], BLOCK=256)
        return out
