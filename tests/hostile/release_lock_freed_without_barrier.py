"""A lock around sums of columns that is freed before all lanes have stored theirs.

reference: ../tasks/column_sums.py
verdict: Unsafe
rule: missing-barrier
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
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire") == 1:
        pass
    tl.store(out_ptr + c, tl.load(out_ptr + c, mask=live) + acc, mask=live)
    tl.atomic_xchg(lock_ptr, 0, sem="release")


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        lock = torch.zeros(1, device=x.device, dtype=torch.int32)
        out = torch.zeros(cols, device=x.device, dtype=x.dtype)
        column_kernel[(triton.cdiv(rows, 16),)](x, lock, out, rows, cols, EACH=16, BLOCK=256)
        return out
