"""A softmax under a mask of zeros and ones in float32, which leaves out every element.

reference: ../tasks/scores_of_kept.py
verdict: Mismatch
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, kept_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    kept = tl.load(kept_ptr + row * cols + c, mask=c < cols, other=0.0) * 0.999
    scores = tl.where(c < cols, tl.where(kept == 1.0, x, -4.0), -float("inf"))
    e = tl.exp(scores - tl.max(scores, 0))
    tl.store(out_ptr + row * cols + c, e / tl.sum(e, 0), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x, other):
        out = torch.empty_like(x)
        row_kernel[(x.shape[0],)](x, other, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
