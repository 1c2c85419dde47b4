"""Of the configurations the one of eight rows takes the maximum of all its rows.

reference: ../tasks/softmax.py
verdict: Mismatch
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"ROWS": r}, num_warps=w) for r, w in ((1, 4), (2, 4), (8, 8))], key=["cols"])
@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    mask = (r < rows) & (c < cols)
    x = tl.load(x_ptr + r * cols + c, mask=mask, other=float("-inf"))
    most = tl.max(x, 1)[:, None]
    if ROWS == 8:
        most = tl.max(most, 0)[None, :]
    e = tl.exp(x - most)
    tl.store(out_ptr + r * cols + c, e / tl.sum(e, 1)[:, None], mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        grid = lambda meta: (triton.cdiv(x.shape[0], meta["ROWS"]),)
        softmax_kernel[grid](x, out, *x.shape, BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
