"""One kernel writes the nearest code's number, the next uses it as an address.

reference: ../tasks/vq.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def nearest(x_ptr, codes_ptr, index_ptr, CODES: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    d, k = tl.arange(0, WIDTH), tl.arange(0, CODES)
    x = tl.load(x_ptr + row * WIDTH + d)
    codes = tl.load(codes_ptr + k[:, None] * WIDTH + d[None, :])
    gap = codes - x[None, :]
    tl.store(index_ptr + row, tl.argmin(tl.sum(gap * gap, 1), 0))


@triton.jit
def look_up(x_ptr, codes_ptr, index_ptr, out_ptr, part_ptr, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    d = tl.arange(0, WIDTH)
    code = tl.load(index_ptr + row)
    value = tl.load(codes_ptr + code * WIDTH + d)
    tl.store(out_ptr + row * WIDTH + d, value)
    gap = tl.load(x_ptr + row * WIDTH + d) - value
    tl.store(part_ptr + row, tl.sum(gap * gap, 0))


@triton.jit
def mean(part_ptr, out_ptr, ROWS, SIZE, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(part_ptr + i, mask=i < ROWS, other=0.0), 0) / SIZE)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(64, 32))

    def forward(self, x):
        rows, width = x.shape
        index = torch.empty(rows, dtype=torch.int32, device=x.device)
        nearest[(rows,)](x, self.codes, index, CODES=64, WIDTH=width)
        out, part = torch.empty_like(x), torch.empty(rows, device=x.device)
        look_up[(rows,)](x, self.codes, index, out, part, WIDTH=width)
        loss = torch.empty((), device=x.device)
        mean[(1,)](part, loss, rows, rows * width, BLOCK=256)
        return out, loss
