"""Functional style: a decorated launcher at module level, an exp instead of a sigmoid, rows in a loop.

reference: ../tasks/swiglu.py
verdict: Verified
"""
import functools

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swiglu_kernel(x_ptr, out_ptr, rows, cols, ROWS_EACH: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS_EACH
    for r in range(first, tl.minimum(first + ROWS_EACH, rows)):
        for start in range(0, cols, BLOCK):
            c = start + tl.arange(0, BLOCK)
            gate = tl.load(x_ptr + r * 2 * cols + c, mask=c < cols, other=0.0)
            up = tl.load(x_ptr + r * 2 * cols + cols + c, mask=c < cols, other=0.0)
            tl.store(out_ptr + r * cols + c, gate / (1.0 + tl.exp(-gate)) * up, mask=c < cols)


def on_contiguous(function):
    @functools.wraps(function)
    def wrapper(*tensors):
        return function(*(t.contiguous() for t in tensors))

    return wrapper


@on_contiguous
def swiglu(x: torch.Tensor) -> torch.Tensor:
    *batch, width = x.shape
    flat = x.reshape(-1, width)
    out = flat.new_empty(flat.shape[0], width // 2)
    swiglu_kernel[(triton.cdiv(flat.shape[0], 4),)](flat, out, flat.shape[0], width // 2, ROWS_EACH=4, BLOCK=512)
    return out.reshape(*batch, width // 2)


class ModelNew(nn.Module):
    forward = staticmethod(swiglu)
