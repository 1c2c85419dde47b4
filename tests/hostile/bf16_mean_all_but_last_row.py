"""Forgets the last of 512 rows.

reference: ../tasks/mean_rows_bf16.py
verdict: Mismatch
rule: values
why: each column is off by a row's share.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, rows, cols, STEP: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for r in range(rows - 1):
        total += tl.load(x_ptr + r * cols + c).to(tl.float32)
    tl.store(out_ptr + c, (total / rows).to(out_ptr.dtype.element_ty))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[1], device=x.device, dtype=x.dtype)
        mean_kernel[(x.shape[1] // 64,)](x, out, x.shape[0], x.shape[1], STEP=4, BLOCK=64)
        return out
