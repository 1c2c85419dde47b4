"""An online softmax whose running maximum begins at -1e4.

reference: ../tasks/softmax.py
verdict: Mismatch
rule: values
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    base = tl.program_id(0) * cols
    high = -1e4
    total = 0.0
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + c, mask=c < cols, other=-float("inf"))
        higher = tl.maximum(high, tl.max(x, 0))
        total = total * tl.exp(high - higher) + tl.sum(tl.exp(x - higher), 0)
        high = higher
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + c, mask=c < cols, other=0.0)
        tl.store(out_ptr + base + c, tl.exp(x - high) / total, mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
