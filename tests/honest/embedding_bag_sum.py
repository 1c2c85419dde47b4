"""A program a bag, a two-dimensional gather summed over the tokens.

reference: ../tasks/embedding_bag.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bag_kernel(tokens_ptr, table_ptr, out_ptr, length, width, TOKENS: tl.constexpr, BLOCK: tl.constexpr):
    bag = tl.program_id(0)
    t = tl.arange(0, TOKENS)
    c = tl.arange(0, BLOCK)
    token = tl.load(tokens_ptr + bag * length + t, mask=t < length, other=0)
    mask = (t[:, None] < length) & (c[None, :] < width)
    rows = tl.load(table_ptr + token[:, None] * width + c[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + bag * width + c, tl.sum(rows, axis=0), mask=c < width)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = nn.EmbeddingBag(vocabulary, width, mode="sum")

    def forward(self, tokens):
        bags, length = tokens.shape
        table = self.table.weight
        out = torch.empty((bags, table.shape[1]), device=table.device, dtype=table.dtype)
        bag_kernel[(bags,)](
            tokens, table, out, length, table.shape[1],
            TOKENS=triton.next_power_of_2(length), BLOCK=triton.next_power_of_2(table.shape[1]),
        )
        return out
