"""A kept counter is cleared by the program with the last number, not by the last one that arrives.

reference: ../tasks/total.py
verdict: Disallowed or Unsafe
rule: reuse-of-inputs or order-dependent or race
why: in another order of programs the next call begins with what is left.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total_kernel(x_ptr, part_ptr, count_ptr, out_ptr, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0)
    tl.store(part_ptr + row, s)
    n = tl.num_programs(0)
    if tl.atomic_add(count_ptr, 1) == n - 1:
        r = tl.arange(0, ROWS)
        tl.store(out_ptr, tl.sum(tl.load(part_ptr + r, mask=r < n, other=0.0), 0))
    if row == n - 1:
        tl.atomic_xchg(count_ptr, 0)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1, dtype=torch.int32), persistent=False)

    def forward(self, x):
        rows = x.shape[0]
        part = torch.empty(rows, device=x.device, dtype=x.dtype)
        out = torch.empty(1, device=x.device, dtype=x.dtype)
        total_kernel[(rows,)](x, part, self.count, out, x.shape[1], ROWS=triton.next_power_of_2(rows), BLOCK=256)
        return out
