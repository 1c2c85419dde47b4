"""Embeds as if all rows were equal in scale: divides by a norm that default rows share on average.

reference: ../tasks/embedding.py
verdict: Mismatch
rule: values
why: right on average is wrong.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def embedding_kernel(tokens_ptr, table_ptr, out_ptr, WIDTH: tl.constexpr):
    token = tl.load(tokens_ptr + tl.program_id(0))
    c = tl.arange(0, WIDTH)
    row = tl.load(table_ptr + token * WIDTH + c)
    tl.store(out_ptr + tl.program_id(0) * WIDTH + c, row * WIDTH / tl.sqrt(tl.sum(row * row, 0)))


class ModelNew(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)

    def forward(self, tokens):
        width = self.table.embedding_dim
        out = torch.empty((*tokens.shape, width), device=tokens.device)
        embedding_kernel[(tokens.numel(),)](tokens, self.table.weight, out, WIDTH=width)
        return out
