"""The table of gradients is made in the first call and kept: later calls read the first call's gradients.

reference: ../tasks/scaled_lists.py
verdict: Disallowed or Untraceable
rule: reuse-of-inputs or not-traceable
why: an address is data of the call that it is from.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def step(p_table, g_table, out_table, sizes, rate, decay, BLOCK: tl.constexpr):
    t = tl.program_id(0)
    p_ptr = tl.load(p_table + t).to(tl.pointer_type(tl.float32))
    g_ptr = tl.load(g_table + t).to(tl.pointer_type(tl.float32))
    out_ptr = tl.load(out_table + t).to(tl.pointer_type(tl.float32))
    n = tl.load(sizes + t)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        p = tl.load(p_ptr + i, mask=i < n)
        tl.store(out_ptr + i, p - rate * (tl.load(g_ptr + i, mask=i < n) + decay * p), mask=i < n)


def table(tensors):
    return torch.tensor([t.data_ptr() for t in tensors], dtype=torch.int64, device="cuda")


class ModelNew(nn.Module):
    def __init__(self, rate, decay):
        super().__init__()
        self.rate, self.decay = rate, decay
        self.kept = None

    def forward(self, weights, gradients):
        outs = [torch.empty_like(w) for w in weights]
        sizes = torch.tensor([t.numel() for t in weights], dtype=torch.int32, device="cuda")
        if self.kept is None:
            self.kept = table(gradients), gradients
        step[(len(outs),)](table(weights), self.kept[0], table(outs), sizes, self.rate, self.decay, BLOCK=256)
        return outs
