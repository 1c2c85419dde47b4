"""A kept workspace of torch.empty that a permutation, worked out by torch, is scattered into; a kernel gathers it back.

reference: ../tasks/gather_rows.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(x_ptr, place_ptr, work_ptr, cols, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    to = tl.load(place_ptr + row)
    tl.store(work_ptr + to * cols + c, tl.load(x_ptr + row * cols + c, mask=c < cols), mask=c < cols)


@triton.jit
def pick_kernel(work_ptr, place_ptr, index_ptr, weight_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    at = tl.load(place_ptr + tl.load(index_ptr + row))
    x = tl.load(work_ptr + at * cols + c, mask=c < cols)
    tl.store(out_ptr + row * cols + c, x * tl.load(weight_ptr + row), mask=c < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.work = torch.empty(300, 130, device="cuda")

    def forward(self, x, index, weight):
        rows, cols = x.shape
        used = torch.zeros(rows, dtype=torch.int32, device=x.device)
        used[index] = 1
        place = torch.argsort(used, stable=True).argsort()
        out = torch.empty(index.shape[0], cols, device=x.device)
        scatter_kernel[(rows,)](x, place, self.work, cols, BLOCK=256)
        pick_kernel[(index.shape[0],)](self.work, place, index, weight, out, cols, BLOCK=256)
        return out
