"""tl.sort of the whole row, descending, and the first eight kept.

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
    x = tl.sort(x, descending=True)
    tl.store(out_ptr + row * TOP + c, x, mask=c < TOP)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty((x.shape[0], 8), device=x.device, dtype=x.dtype)
        topk_kernel[(x.shape[0],)](x, out, x.shape[1], TOP=8, BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
