"""One table leads to three more: the kernel follows two addresses. Absent tensors are zeros in the table.

reference: ../tasks/scaled_lists.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def step(lists, out_table, sizes, rate, decay, BLOCK: tl.constexpr):
    t = tl.program_id(0)
    p_table = tl.load(lists).to(tl.pointer_type(tl.int64))
    g_table = tl.load(lists + 1).to(tl.pointer_type(tl.int64))
    p_ptr = tl.load(p_table + t).to(tl.pointer_type(tl.float32))
    address = tl.load(g_table + t)
    out_ptr = tl.load(out_table + t).to(tl.pointer_type(tl.float32))
    n = tl.load(sizes + t)
    if address != 0:
        g_ptr = address.to(tl.pointer_type(tl.float32))
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
        p, g, o = (
            torch.tensor([t.data_ptr() for t in tensors] + [0], device="cuda")
            for tensors in (weights, gradients, outs)
        )
        lists = torch.tensor([p.data_ptr(), g.data_ptr()], device="cuda")
        sizes = torch.tensor([t.numel() for t in outs], dtype=torch.int32, device="cuda")
        step[(len(outs),)](lists, o, sizes, self.rate, self.decay, BLOCK=256)
        return outs
