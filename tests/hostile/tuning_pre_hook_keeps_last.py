"""The autotuner's pre_hook zeroes before each measured run, and not before the chosen one.

reference: ../tasks/row_sums.py
verdict: Mismatch
rule: values
why: The hook ignores the call with reset_only, which comes between the last measured run and the chosen one.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def clear(args, reset_only=False):
    if not reset_only:
        args["out_ptr"].zero_()


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}) for block in (64, 256)], key=["cols"], pre_hook=clear
)
@triton.jit
def sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    c = part * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + row, tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.zeros(rows, device=x.device, dtype=x.dtype)
        sum_kernel[lambda meta: (rows, triton.cdiv(cols, meta["BLOCK"]))](x, out, cols)
        return out
