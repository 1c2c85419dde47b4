"""The first forward tunes on memory that it throws away; then atomics add once in every call.

reference: ../tasks/row_sums.py
verdict: Verified
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (64, 256)], key=["cols"])
@triton.jit
def sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    c = part * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + row, tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.tuned = False

    def forward(self, x):
        rows, cols = x.shape
        grid = lambda meta: (rows, triton.cdiv(cols, meta["BLOCK"]))
        if not self.tuned:
            sum_kernel[grid](x, torch.zeros(rows, device=x.device, dtype=x.dtype), cols)
            self.tuned = True
        out = torch.zeros(rows, device=x.device, dtype=x.dtype)
        sum_kernel[grid](x, out, cols)
        return out
