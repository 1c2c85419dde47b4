"""A workspace of zeros keeps the parts of configurations with more programs than the chosen one.

reference: ../tasks/row_sums.py
verdict: Mismatch
rule: values
why: Every configuration is right by itself, on a workspace of zeros.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (256, 32, 64)], key=["cols"])
@triton.jit
def parts_kernel(x_ptr, part_ptr, cols, most, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    c = part * BLOCK + tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0)
    tl.store(part_ptr + row * most + part, s)


@triton.jit
def add_kernel(part_ptr, out_ptr, most, MOST: tl.constexpr):
    row = tl.program_id(0)
    m = tl.arange(0, MOST)
    tl.store(out_ptr + row, tl.sum(tl.load(part_ptr + row * most + m, mask=m < most, other=0.0), 0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        most = 8
        part = torch.zeros(rows, most, device=x.device, dtype=x.dtype)
        out = torch.empty(rows, device=x.device, dtype=x.dtype)
        parts_kernel[lambda meta: (rows, triton.cdiv(cols, meta["BLOCK"]))](x, part, cols, most)
        add_kernel[(rows,)](part, out, most, MOST=8)
        return out
