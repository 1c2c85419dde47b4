"""A barrier of relaxed atomics, which order nothing.

reference: ../tasks/center_all.py
verdict: Unsafe
rule: race
why: the partial sums need not be visible when the count is.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def center_kernel(x_ptr, part_ptr, count_ptr, out_ptr, n, total, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    programs = tl.num_programs(0)
    at = row * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(part_ptr + row, tl.sum(x, 0))
    tl.debug_barrier()
    tl.atomic_add(count_ptr, 1, sem="relaxed")
    while tl.atomic_add(count_ptr, 0, sem="relaxed") < programs:
        pass
    r = tl.arange(0, ROWS)
    mean = tl.sum(tl.load(part_ptr + r, mask=r < programs, other=0.0), 0) / total
    tl.store(out_ptr + at, x - mean, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        programs = triton.cdiv(n, 256)
        part = torch.empty(programs, device=x.device, dtype=x.dtype)
        count = torch.zeros(1, device=x.device, dtype=torch.int32)
        out = torch.empty_like(x)
        center_kernel[(programs,)](x, part, count, out, n, float(n), ROWS=triton.next_power_of_2(programs), BLOCK=256)
        return out
