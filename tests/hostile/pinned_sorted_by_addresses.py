"""Sorts in Python and loads the keys in that order, by a table of where each lies.

reference: ../tasks/sort_keys_few.py
verdict: Disallowed
rule: host-computed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gather_kernel(x_ptr, order_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.load(order_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, tl.load(x_ptr + at, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        keys = x.tolist()
        order = sorted(range(len(keys)), key=keys.__getitem__)
        out = torch.empty_like(x)
        gather_kernel[(1,)](x, torch.tensor(order, dtype=torch.int32, device=x.device), out, len(keys), BLOCK=64)
        return out
