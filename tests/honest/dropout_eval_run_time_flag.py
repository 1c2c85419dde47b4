"""The same with run-time values: tl.rand runs, its keep probability is one.

reference: ../tasks/dropout_eval.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dropout_sigmoid(x_ptr, out_ptr, n, seed, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    keep = tl.rand(seed, i) >= p
    x = tl.where(keep, x / (1.0 - p), 0.0)
    tl.store(out_ptr + i, 1.0 / (1.0 + tl.exp(-x)), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.3)
        self.eval()

    def forward(self, x):
        p = self.drop.p if self.training else 0.0
        out = torch.empty_like(x)
        dropout_sigmoid[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), 7, p, BLOCK=256)
        return out
