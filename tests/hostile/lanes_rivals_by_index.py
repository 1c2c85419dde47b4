"""Scatters rows by indices that come twice, as if stores of one tile had an order.

reference: ../tasks/scattered_last.py
verdict: Unsafe
rule: order-dependent or race
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(i_ptr, x_ptr, out_ptr):
    c = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(out_ptr + tl.load(i_ptr + c), tl.load(x_ptr + c))


class ModelNew(nn.Module):
    def forward(self, i, x):
        out = torch.zeros(16, device=x.device)
        k[(4,)](i, x, out)
        return out
