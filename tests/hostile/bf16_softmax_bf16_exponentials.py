"""The exponentials are rounded to bf16 and their sum is taken of every second one.

reference: ../tasks/softmax_rows_bf16.py
verdict: Mismatch
rule: values
why: a row's sum is a sample's.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    live = c < cols
    x = tl.load(x_ptr + row * cols + c, mask=live, other=0).to(tl.float32)
    x = tl.where(live, x, float("-inf"))
    p = tl.exp(x - tl.max(x, 0)).to(tl.bfloat16).to(tl.float32)
    y = p / (2 * tl.sum(tl.where(c % 2 == 0, p, 0), 0))
    tl.store(out_ptr + row * cols + c, y.to(out_ptr.dtype.element_ty), mask=live)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        row_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
