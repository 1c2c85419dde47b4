"""The program of the highest number takes the sum to be complete.

reference: ../tasks/total.py
verdict: Unsafe
rule: order-dependent
why: the others need not have run by then.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total_kernel(x_ptr, part_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0)
    tl.atomic_add(part_ptr, s)
    if row == tl.num_programs(0) - 1:
        tl.store(out_ptr, tl.atomic_add(part_ptr, 0.0))


class ModelNew(nn.Module):
    def forward(self, x):
        part = torch.zeros(1, device=x.device, dtype=x.dtype)
        out = torch.empty(1, device=x.device, dtype=x.dtype)
        total_kernel[(x.shape[0],)](x, part, out, x.shape[1], BLOCK=256)
        return out
