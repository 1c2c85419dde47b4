"""A fixed number of programs with grid-stride loops, then one program.

reference: ../tasks/mean_all.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_kernel(x_ptr, parts_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(parts_ptr + tl.program_id(0), tl.sum(acc, 0))


@triton.jit
def finish_kernel(parts_ptr, out_ptr, n, PARTS: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(parts_ptr + tl.arange(0, PARTS)), 0) / n)


class ModelNew(nn.Module):
    def forward(self, x):
        parts = torch.empty(64, device=x.device, dtype=torch.float32)
        out = torch.empty((), device=x.device, dtype=x.dtype)
        partial_kernel[(64,)](x, parts, x.numel(), BLOCK=512)
        finish_kernel[(1,)](parts, out, x.numel(), PARTS=64)
        return out
