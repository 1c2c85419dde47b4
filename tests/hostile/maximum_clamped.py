"""No maximum is below -20.

reference: ../tasks/softmax.py
verdict: Mismatch
rule: values
why: rows that are far below zero lose all that they add up to.
"""
import functools

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=-float("inf"))
    e = tl.exp2((x - tl.maximum(tl.max(x, 0), -20.0)) * 1.4426950408889634)
    tl.store(out_ptr + row * cols + c, e * (1.0 / tl.sum(e, 0)), mask=c < cols)


@functools.lru_cache(maxsize=None)
def launch_parameters(cols):
    block = triton.next_power_of_2(cols)
    return {"BLOCK": block, "num_warps": min(16, max(1, block // 256))}


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], **launch_parameters(x.shape[1]))
        return out
