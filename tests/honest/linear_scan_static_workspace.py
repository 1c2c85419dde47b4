"""A kept workspace, a part of it per launch: each launch reads the part that the one before it wrote.

reference: ../tasks/linear_scan.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def first_kernel(b_ptr, work_ptr, rows, steps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(work_ptr + i, tl.load(b_ptr + i * steps, mask=i < rows), mask=i < rows)


@triton.jit
def step_kernel(a_ptr, b_ptr, work_ptr, rows, steps, t, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    before = tl.load(work_ptr + (t - 1) * rows + i, mask=i < rows)
    a, b = tl.load(a_ptr + i * steps + t, mask=i < rows), tl.load(b_ptr + i * steps + t, mask=i < rows)
    tl.store(work_ptr + t * rows + i, a * before + b, mask=i < rows)


@triton.jit
def turn_kernel(work_ptr, out_ptr, rows, steps, BLOCK: tl.constexpr):
    t = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    tl.store(out_ptr + row * steps + t, tl.load(work_ptr + t * rows + row, mask=t < steps), mask=t < steps)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.work = None

    def forward(self, a, b):
        rows, steps = b.shape
        if self.work is None:
            self.work = torch.empty(steps, rows, device=b.device)
        first_kernel[(1,)](b, self.work, rows, steps, BLOCK=triton.next_power_of_2(rows))
        for t in range(1, steps):
            step_kernel[(1,)](a, b, self.work, rows, steps, t, BLOCK=triton.next_power_of_2(rows))
        out = torch.empty_like(b)
        turn_kernel[(rows,)](self.work, out, rows, steps, BLOCK=triton.next_power_of_2(steps))
        return out
