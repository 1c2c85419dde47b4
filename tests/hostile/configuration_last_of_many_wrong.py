"""Offers ninety configurations, of which the last but two is wrong.

reference: ../tasks/softmax_rows_short.py
verdict: Mismatch
rule: values
why: every configuration is run.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"ROWS": 1 << (s % 3), "SALT": s}) for s in range(90)], key=["cols"])
@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, cols, ROWS: tl.constexpr, SALT: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, BLOCK)
    inside = (r[:, None] < rows) & (c[None, :] < cols)
    x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=inside, other=float("-inf"))
    if SALT == 87:
        e = tl.exp(x)
        e = e * e
    else:
        e = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + r[:, None] * cols + c[None, :], e / tl.sum(e, axis=1)[:, None], mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rows, cols = x.shape
        softmax_kernel[lambda meta: (triton.cdiv(rows, meta["ROWS"]),)](x, out, rows, cols, BLOCK=128)
        return out
