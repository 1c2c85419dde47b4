"""Takes the maximum eight times, each time striking out the first place where it stood.

reference: ../tasks/topk.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def topk_kernel(x_ptr, out_ptr, cols, TOP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=-float("inf"))
    live = c < cols
    for i in range(TOP):
        candidates = tl.where(live, x, -float("inf"))
        high = tl.max(candidates, 0)
        first = tl.min(tl.where(live & (candidates == high), c, BLOCK), 0)
        tl.store(out_ptr + row * TOP + i, high)
        live = live & (c != first)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty(rows, 8, device=x.device)
        topk_kernel[(rows,)](x, out, cols, TOP=8, BLOCK=triton.next_power_of_2(cols))
        return out
