"""Each program waits for the sum of the one with the number before it; numbers are not the order.

reference: ../tasks/prefix_of_all.py
verdict: Unsafe
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scan_kernel(x_ptr, sums_ptr, flags_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    before = 0.0
    if pid > 0:
        while tl.atomic_add(flags_ptr + pid - 1, 0) == 0:
            pass
        before = tl.load(sums_ptr + pid - 1, volatile=True)
    tl.store(sums_ptr + pid, before + tl.sum(x, 0))
    tl.atomic_xchg(flags_ptr + pid, 1)
    tl.store(out_ptr + i, before + tl.cumsum(x, 0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        n, block = x.numel(), 16
        programs = triton.cdiv(n, block)
        sums = torch.empty(programs, device=x.device)
        flags = torch.zeros(programs, device=x.device, dtype=torch.int32)
        out = torch.empty_like(x)
        scan_kernel[(programs,)](x, sums, flags, out, n, BLOCK=block)
        return out
