"""The task gelu_linear with one autotuned kernel for all of it."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.autotune(
    configs=[triton.Config({"BLOCK_M": 16}, num_warps=2), triton.Config({"BLOCK_M": 32}, num_warps=4)],
    key=["M", "N"],
)
@triton.jit
def fused(
    x_ptr, w_ptr, b_ptr, shift_ptr, y_ptr, sum_ptr, M, N, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    row_mask, col_mask = rows[:, None] < M, cols[None, :] < N
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=row_mask & col_mask, other=0.0)
    w = tl.load(w_ptr + cols[:, None] + cols[None, :] * N, mask=(cols[:, None] < N) & col_mask, other=0.0)
    h = tl.dot(x, w, input_precision="ieee") + tl.load(b_ptr + cols, mask=cols < N, other=0.0)[None, :]
    y = 0.5 * h * (1.0 + libdevice.tanh(0.7978845608028654 * (h + 0.044715 * h * h * h))) + x
    y = tl.where(col_mask, y, 0.0)
    tl.store(sum_ptr + rows, tl.sum(y, axis=1), mask=rows < M)
    shift = tl.load(shift_ptr + cols, mask=cols < N, other=0.0)
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], y * scale + shift[None, :], mask=row_mask & col_mask)


class ModelNew(nn.Module):
    def __init__(self, features, scale):
        super().__init__()
        self.fc = nn.Linear(features, features)
        self.scale = scale
        self.register_buffer("shift", torch.full((features,), 0.5))

    def forward(self, x):
        m, n = x.shape
        y = torch.empty_like(x)
        sums = torch.empty(m, device=x.device)
        grid = lambda meta: (triton.cdiv(m, meta["BLOCK_M"]),)  # noqa: E731
        fused[grid](
            x,
            self.fc.weight,
            self.fc.bias,
            self.shift,
            y,
            sums,
            m,
            n,
            self.scale,
            BLOCK_N=triton.next_power_of_2(n),
        )
        return y, sums
