"""Keeps the task's own offsets in a buffer, and never looks at those that it is given.

reference: ../tasks/bags_written_out.py
verdict: Mismatch
rule: values
why: offsets are drawn anew between their ends, written out or not.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bag_kernel(tokens_ptr, offsets_ptr, table_ptr, out_ptr, count, bags, width, BLOCK: tl.constexpr):
    bag = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    first = tl.load(offsets_ptr + bag)
    last = tl.load(offsets_ptr + bag + 1, mask=bag + 1 < bags, other=count)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(first, last):
        token = tl.load(tokens_ptr + i)
        total += tl.load(table_ptr + token * width + c, mask=c < width, other=0.0)
    tl.store(out_ptr + bag * width + c, total, mask=c < width)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.EmbeddingBag(50, 12, mode="sum")
        self.register_buffer("offsets", torch.tensor([0, 3, 3, 20, 36]), persistent=False)

    def forward(self, tokens, offsets):
        table = self.table.weight
        bags, width = offsets.shape[0], table.shape[1]
        out = torch.empty(bags, width, device=table.device)
        bag_kernel[(bags,)](tokens, self.offsets, table, out, tokens.shape[0], bags, width, BLOCK=16)
        return out
