"""A kernel ranks rows by norm and scatters their numbers into bytes; the next gathers rows by the bytes.

reference: ../tasks/top_rows.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norms(x_ptr, norm_ptr, WIDTH, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    d = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * WIDTH + d, mask=d < WIDTH, other=0.0)
    tl.store(norm_ptr + row, tl.sum(x * x, 0))


@triton.jit
def ranks(norm_ptr, chosen_ptr, COUNT, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    all_norms = tl.load(norm_ptr + i)
    mine = tl.load(norm_ptr + row)
    ahead = (all_norms > mine) | ((all_norms != all_norms) & (mine == mine)) | (((all_norms == mine) | ((all_norms != all_norms) & (mine != mine))) & (i < row))
    rank = tl.sum(ahead.to(tl.int32), 0)
    tl.store(chosen_ptr + rank, row.to(tl.uint8), mask=rank < COUNT)


@triton.jit
def gather(x_ptr, chosen_ptr, out_ptr, WIDTH, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    d = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(COUNT):
        row = tl.load(chosen_ptr + k).to(tl.int32)
        total += tl.load(x_ptr + row * WIDTH + d, mask=d < WIDTH, other=0.0)
        tl.store(out_ptr + k * WIDTH + d, total, mask=d < WIDTH)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, width = x.shape
        norm = torch.empty(rows, device=x.device)
        norms[(rows,)](x, norm, width, BLOCK=32)
        chosen = torch.empty(16, dtype=torch.uint8, device=x.device)
        ranks[(rows,)](norm, chosen, 16, BLOCK=128)
        out = torch.empty(16, width, device=x.device)
        gather[(1,)](x, chosen, out, width, COUNT=16, BLOCK=32)
        return out
