"""Sums of columns under a lock, with a flag for the first to store: as Triton's tutorial sums weights' gradients.

reference: ../tasks/column_sums.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def column_kernel(x_ptr, lock_ptr, out_ptr, rows, cols, EACH: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    live = c < cols
    acc = tl.zeros((BLOCK,), tl.float32)
    for r in range(EACH):
        row = tl.program_id(0) * EACH + r
        acc += tl.load(x_ptr + row * cols + c, mask=live & (row < rows), other=0.0)
    count_ptr = lock_ptr + 1
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    count = tl.load(count_ptr)
    if count == 0:
        tl.atomic_xchg(count_ptr, 1)
    else:
        acc += tl.load(out_ptr + c, mask=live)
    tl.store(out_ptr + c, acc, mask=live)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        lock = torch.zeros(2, device=x.device, dtype=torch.int32)
        out = torch.empty(cols, device=x.device, dtype=x.dtype)
        column_kernel[(triton.cdiv(rows, 16),)](x, lock, out, rows, cols, EACH=16, BLOCK=256)
        return out
