"""All lanes of one store write to one element; which of them remains is not decided.

reference: ../tasks/last_element_doubled.py
verdict: Unsafe
rule: order-dependent
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, out_ptr):
    c = tl.arange(0, 64)
    tl.store(out_ptr + c * 0, tl.load(x_ptr + c) * 2)


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.new_empty(())
        k[(1,)](x, out)
        return out
