"""Token ids compared and shifted by torch: a mask and addresses; the kernel gathers.

reference: ../tasks/embedding.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gather_kernel(table_ptr, at_ptr, valid_ptr, out_ptr, scale, WIDTH: tl.constexpr):
    t, c = tl.program_id(0), tl.arange(0, WIDTH)
    valid = tl.load(valid_ptr + t)
    row = tl.load(table_ptr + tl.load(at_ptr + t) + c, mask=valid, other=0.0)
    tl.store(out_ptr + t * WIDTH + c, row * scale)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.scale = width**0.5

    def forward(self, tokens):
        width = self.table.weight.shape[1]
        out = torch.empty(*tokens.shape, width, device=tokens.device)
        valid = tokens >= 0
        gather_kernel[(tokens.numel(),)](self.table.weight, tokens * width, valid, out, self.scale, WIDTH=width)
        return out
