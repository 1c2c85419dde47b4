"""One of the tensors that the table leads to was allocated and never written.

reference: ../tasks/scaled_lists.py
verdict: Unsafe
rule: uninitialized-read
why: torch.empty holds no zeros.
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
    zero_ptr = tl.load(out_table + tl.num_programs(0)).to(tl.pointer_type(tl.float32))
    rate += tl.load(zero_ptr)
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

    def forward(self, weights, gradients):
        outs = [torch.empty_like(w) for w in weights]
        zero = torch.empty(1, device="cuda")
        sizes = torch.tensor([t.numel() for t in weights], dtype=torch.int32, device="cuda")
        step[(len(outs),)](table(weights), table(gradients), table([*outs, zero]), sizes, self.rate, self.decay,
                           BLOCK=256)
        return outs
