"""Each program subtracts the maximum of the programs that ran before it.

reference: ../tasks/less_the_maximum.py
verdict: Unsafe
rule: order-dependent
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, m_ptr, out_ptr):
    c = tl.arange(0, 32)
    r = tl.program_id(0)
    x = tl.load(x_ptr + r * 32 + c)
    tl.atomic_max(m_ptr, tl.max(x, 0))
    tl.debug_barrier()
    m = tl.atomic_add(m_ptr, 0.0)
    tl.store(out_ptr + r * 32 + c, x - m)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        m = torch.full((1,), -float("inf"), device=x.device)
        k[(64,)](x, m, out)
        return out
