"""Parts of a row summed by several programs; the last one to finish (an atomic counter) adds them up.

reference: ../tasks/row_sum.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, parts_ptr, count_ptr, out_ptr, cols, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    each = tl.cdiv(cols, PARTS)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(part * each, min(cols, (part + 1) * each), BLOCK):
        c = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * cols + c, mask=c < min(cols, (part + 1) * each), other=0.0)
    tl.atomic_add(parts_ptr + row * PARTS + part, tl.sum(acc, 0))
    done = tl.atomic_add(count_ptr + row, 1, sem="acq_rel")
    if done == PARTS - 1:
        p = tl.arange(0, PARTS)
        total = tl.atomic_add(parts_ptr + row * PARTS + p, tl.zeros((PARTS,), tl.float32))
        tl.store(out_ptr + row, tl.sum(total, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        parts = torch.zeros((rows, 4), device=x.device, dtype=torch.float32)
        count = torch.zeros(rows, device=x.device, dtype=torch.int32)
        out = torch.empty(rows, device=x.device, dtype=x.dtype)
        sum_kernel[(rows, 4)](x, parts, count, out, cols, PARTS=4, BLOCK=512)
        return out
