"""A kernel turns x into fixed point, torch.cumsum adds it up as int64, another kernel turns the sums back.

reference: ../tasks/cumsum.py
verdict: Disallowed
rule: aten-compute
why: the scan is the task, whatever type its numbers have on the way.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fix_kernel(x_ptr, q_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float64)
    tl.store(q_ptr + i, (x * 1099511627776.0).to(tl.int64), mask=i < n)


@triton.jit
def unfix_kernel(q_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i, mask=i < n)
    tl.store(out_ptr + i, (q.to(tl.float64) / 1099511627776.0).to(tl.float32), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        q = torch.empty(x.shape, dtype=torch.int64, device=x.device)
        grid = (triton.cdiv(x.numel(), 512),)
        fix_kernel[grid](x, q, x.numel(), BLOCK=512)
        q = torch.cumsum(q, -1)
        out = torch.empty_like(x)
        unfix_kernel[grid](q, out, x.numel(), BLOCK=512)
        return out
