"""Autotuned over rows per program and warps, on the width as the key.

reference: ../tasks/softmax.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"ROWS": 1}, num_warps=4),
        triton.Config({"ROWS": 2}, num_warps=4, num_stages=2),
        triton.Config({"ROWS": 4}, num_warps=8),
    ],
    key=["cols"],
)
@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, BLOCK)
    mask = (r[:, None] < rows) & (c[None, :] < cols)
    where = r[:, None] * cols + c[None, :]
    x = tl.load(x_ptr + where, mask=mask, other=float("-inf"))
    x = tl.where(r[:, None] < rows, x, 0.0)
    e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    tl.store(out_ptr + where, e / tl.sum(e, axis=1, keep_dims=True), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty_like(x)
        grid = lambda meta: (triton.cdiv(rows, meta["ROWS"]),)
        softmax_kernel[grid](x, out, rows, cols, BLOCK=triton.next_power_of_2(cols))
        return out
