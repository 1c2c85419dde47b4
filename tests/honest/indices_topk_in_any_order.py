"""The largest in descending order, where the task leaves the order open (sorted=False).

reference: ../tasks/topk_in_any_order.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, v_ptr, i_ptr):
    r = tl.program_id(0)
    c = tl.arange(0, 64)
    x = tl.load(x_ptr + r * 64 + c)
    rank = tl.sum(((x[None, :] > x[:, None]) | ((x[None, :] == x[:, None]) & (c[None, :] < c[:, None]))).to(tl.int32), 1)
    tl.store(v_ptr + r * 8 + rank, x, mask=rank < 8)
    tl.store(i_ptr + r * 8 + rank, c.to(tl.int64), mask=rank < 8)


class ModelNew(nn.Module):
    def forward(self, x):
        v = x.new_empty(16, 8)
        i = torch.empty(16, 8, dtype=torch.int64, device=x.device)
        k[(16,)](x, v, i)
        return v, i
