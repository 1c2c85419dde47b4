"""A dropout with tl.rand that is compiled away in evaluation, and a sigmoid.

reference: ../tasks/dropout_eval.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dropout_sigmoid(x_ptr, out_ptr, n, seed, p, TRAINING: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if TRAINING:
        x = tl.where(tl.rand(seed, i) > p, x / (1.0 - p), 0.0)
    tl.store(out_ptr + i, tl.sigmoid(x), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.3)
        self.eval()

    def forward(self, x):
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        dropout_sigmoid[grid](x, out, x.numel(), 1234, self.drop.p, TRAINING=self.training, BLOCK=1024)
        return out
