"""Distances of operands rounded to bf16.

reference: ../tasks/nearest_neighbour.py
verdict: Mismatch
rule: values
why: now and then a neighbour that is not the nearest.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def nearest_kernel(x_ptr, code_ptr, index_ptr, CODES: tl.constexpr, WIDTH: tl.constexpr):
    p = tl.program_id(0)
    d = tl.arange(0, WIDTH)
    k = tl.arange(0, CODES)
    x = tl.load(x_ptr + p * WIDTH + d)
    codes = tl.load(code_ptr + k[:, None] * WIDTH + d[None, :])
    delta = (codes - x[None, :]).to(tl.bfloat16).to(tl.float32)
    distance = tl.sum(delta * delta, 1).to(tl.bfloat16).to(tl.float32)
    tl.store(index_ptr + p, tl.argmin(distance, 0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x, codes):
        index = torch.empty(x.shape[0], device=x.device, dtype=torch.int64)
        nearest_kernel[(x.shape[0],)](x, codes, index, CODES=128, WIDTH=32)
        return index
