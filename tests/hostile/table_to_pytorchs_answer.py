"""PyTorch computes the steps; the kernel copies them through a table of addresses.

reference: ../tasks/scaled_lists.py
verdict: Disallowed
rule: aten-compute or aten-share
policy: strict
why: what is read through a table derives from what PyTorch computed.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy(from_table, to_table, sizes, BLOCK: tl.constexpr):
    t = tl.program_id(0)
    from_ptr = tl.load(from_table + t).to(tl.pointer_type(tl.float32))
    to_ptr = tl.load(to_table + t).to(tl.pointer_type(tl.float32))
    n = tl.load(sizes + t)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        tl.store(to_ptr + i, tl.load(from_ptr + i, mask=i < n), mask=i < n)


def table(tensors):
    return torch.tensor([t.data_ptr() for t in tensors], dtype=torch.int64, device="cuda")


class ModelNew(nn.Module):
    def __init__(self, rate, decay):
        super().__init__()
        self.rate, self.decay = rate, decay

    def forward(self, weights, gradients):
        done = [p - self.rate * (g + self.decay * p) for p, g in zip(weights, gradients)]
        outs = [torch.empty_like(w) for w in weights]
        sizes = torch.tensor([t.numel() for t in weights], dtype=torch.int32, device="cuda")
        copy[(len(outs),)](table(done), table(outs), sizes, BLOCK=256)
        return outs
