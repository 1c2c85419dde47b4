"""Looks up twice the token in an embedding table: beyond its end for half of them.

reference: ../tasks/embedding.py
verdict: Unsafe
rule: out-of-bounds
why: an index computed from data is checked like any other.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def embedding_kernel(tokens_ptr, table_ptr, out_ptr, scale, WIDTH: tl.constexpr):
    token = tl.load(tokens_ptr + tl.program_id(0)) * 2
    c = tl.arange(0, WIDTH)
    tl.store(out_ptr + tl.program_id(0) * WIDTH + c, scale * tl.load(table_ptr + token * WIDTH + c))


class ModelNew(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.scale = width**0.5

    def forward(self, tokens):
        width = self.table.embedding_dim
        out = torch.empty((*tokens.shape, width), device=tokens.device)
        embedding_kernel[(tokens.numel(),)](tokens, self.table.weight, out, self.scale, WIDTH=width)
        return out
