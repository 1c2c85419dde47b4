"""A program a token; int64 indices from memory.

reference: ../tasks/embedding.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def embedding_kernel(tokens_ptr, table_ptr, out_ptr, width, scale, BLOCK: tl.constexpr):
    token = tl.load(tokens_ptr + tl.program_id(0))
    c = tl.arange(0, BLOCK)
    row = tl.load(table_ptr + token * width + c, mask=c < width)
    tl.store(out_ptr + tl.program_id(0) * width + c, row * scale, mask=c < width)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.scale = width**0.5

    def forward(self, tokens):
        width = self.table.embedding_dim
        out = torch.empty((*tokens.shape, width), device=tokens.device, dtype=self.table.weight.dtype)
        embedding_kernel[(tokens.numel(),)](
            tokens, self.table.weight, out, width, self.scale, BLOCK=triton.next_power_of_2(width)
        )
        return out
