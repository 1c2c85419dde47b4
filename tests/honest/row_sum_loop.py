"""A vector of partial sums, reduced once at the end.

reference: ../tasks/row_sum.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in tl.range(0, cols, BLOCK, num_stages=2):
        c = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[:-1], device=x.device, dtype=x.dtype)
        sum_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
