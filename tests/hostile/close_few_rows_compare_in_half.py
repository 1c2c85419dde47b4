"""The place of the greatest of eleven numbers, compared in float16.

reference: ../tasks/place_in_few_rows.py
verdict: Mismatch
rule: values
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def place_kernel(x_ptr, y_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=-float("inf"))
    y = tl.load(y_ptr + row * cols + c, mask=c < cols, other=-float("inf"))
    z = tl.where(x < -1.0, y, x)
    tl.store(out_ptr + row, tl.argmax(z.to(tl.float16), 0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty(x.shape[0], device=x.device, dtype=torch.int64)
        place_kernel[(x.shape[0],)](x, y, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
