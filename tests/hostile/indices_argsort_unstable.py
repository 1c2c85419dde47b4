"""Equal values in the reverse order, where the task asks for a stable sort.

reference: ../tasks/argsort_stable.py
verdict: Mismatch
rule: values
why: stable says which of equals comes first.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sort_kernel(x_ptr, value_ptr, index_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c)
    mine = x[:, None]
    other = x[None, :]
    before = (other < mine) | ((other == mine) & (c[None, :] > c[:, None]))
    rank = tl.sum(before.to(tl.int32), 1)
    tl.store(value_ptr + row * cols + rank, x)
    tl.store(index_ptr + row * cols + rank, c.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        values, indices = torch.empty_like(x), torch.empty(x.shape, device=x.device, dtype=torch.int64)
        sort_kernel[(rows,)](x, values, indices, cols, BLOCK=cols)
        return indices
