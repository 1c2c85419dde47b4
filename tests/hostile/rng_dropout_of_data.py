"""Lets PyTorch's dropout do the product with the data, and not the draw alone.

reference: ../tasks/dropout_train.py
verdict: Disallowed
policy: strict
rule: aten-compute
why: a draw is free where its operands are constants.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sigmoid_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, 1 / (1 + tl.exp(-x)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        dropped = torch.dropout(x, 0.3, True)
        out = torch.empty_like(x)
        sigmoid_kernel[(triton.cdiv(x.numel(), 1024),)](dropped, out, x.numel(), BLOCK=1024)
        return out
