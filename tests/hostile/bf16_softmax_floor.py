"""Adds 1e-4 to each probability.

reference: ../tasks/softmax_rows_bf16.py
verdict: Mismatch
rule: values
why: small probabilities are all too large.
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
    p = tl.exp(x - tl.max(x, 0))
    y = p / tl.sum(p, 0) + 1e-5
    tl.store(out_ptr + row * cols + c, y.to(out_ptr.dtype.element_ty), mask=live)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        row_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
