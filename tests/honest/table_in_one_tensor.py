"""All addresses in the rows of one table: what is read, and where the result goes.

reference: ../tasks/scaled_lists.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def step(table, sizes, count, rate, decay, BLOCK: tl.constexpr):
    t = tl.program_id(0)
    p_ptr = tl.load(table + t).to(tl.pointer_type(tl.float32))
    g_ptr = tl.load(table + count + t).to(tl.pointer_type(tl.float32))
    out_ptr = tl.load(table + 2 * count + t).to(tl.pointer_type(tl.float32))
    n = tl.load(sizes + t)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        p = tl.load(p_ptr + i, mask=i < n)
        tl.store(out_ptr + i, p - rate * (tl.load(g_ptr + i, mask=i < n) + decay * p), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, rate, decay):
        super().__init__()
        self.rate, self.decay = rate, decay

    def forward(self, weights, gradients):
        outs = [torch.empty_like(w) for w in weights]
        lists = (weights, gradients, outs)
        table = torch.tensor([[t.data_ptr() for t in each] for each in lists], device="cuda")
        sizes = torch.tensor([t.numel() for t in outs], dtype=torch.int32, device="cuda")
        step[(len(outs),)](table, sizes, len(outs), self.rate, self.decay, BLOCK=256)
        return outs
