"""Sorts in Python and stacks views of single elements in that order.

reference: ../tasks/sorted_and_moved.py
verdict: Disallowed
rule: host-computed
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n).to(tl.float32) + 0.5, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        order = sorted(range(256), key=x.tolist().__getitem__)
        y = torch.stack([x[i] for i in order])
        out = torch.empty(256, device=x.device)
        add[(1,)](y, out, 256, BLOCK=256)
        return out
