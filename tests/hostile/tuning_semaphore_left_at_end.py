"""Only the first run finds a counter of zero: the others leave the sum to atomics that add to it.

reference: ../tasks/total.py
verdict: Mismatch or Unsafe
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (256, 128)], key=["cols"])
@triton.jit
def total_kernel(x_ptr, part_ptr, count_ptr, out_ptr, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    s = 0.0
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        s += tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0)
    tl.store(part_ptr + row, s)
    n = tl.num_programs(0)
    if tl.atomic_add(count_ptr, 1) == n - 1:
        r = tl.arange(0, ROWS)
        tl.store(out_ptr, tl.sum(tl.load(part_ptr + r, mask=r < n, other=0.0), 0))
    elif tl.atomic_add(count_ptr, 0) > n:
        tl.store(out_ptr, 0.0)


class ModelNew(nn.Module):
    def forward(self, x):
        rows = x.shape[0]
        part = torch.empty(rows, device=x.device, dtype=x.dtype)
        count = torch.zeros(1, device=x.device, dtype=torch.int32)
        out = torch.zeros(1, device=x.device, dtype=x.dtype)
        total_kernel[(rows,)](x, part, count, out, x.shape[1], ROWS=triton.next_power_of_2(rows))
        return out
