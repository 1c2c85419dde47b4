"""Two entries of the table of results are one tensor: two programs write it, and the last one decides.

reference: ../tasks/scaled_lists.py
verdict: Unsafe
rule: race or order-dependent
why: nothing orders the two programs.
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

    def forward(self, weights, gradients):
        outs = [torch.empty_like(w) for w in weights]
        weights, gradients = [weights[1], *weights], [gradients[0], *gradients]
        weights[0] = weights[1]
        table_of_outs = table([outs[0], *outs])
        sizes = torch.tensor([t.numel() for t in weights], dtype=torch.int32, device="cuda")
        step[(len(sizes),)](table(weights), table(gradients), table_of_outs, sizes, self.rate, 2 * self.decay,
                            BLOCK=256)
        return outs
