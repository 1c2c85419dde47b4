"""Packs the slopes with their negatives in the constructor, and reads what was packed.

reference: ../tasks/alibi_scores.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def alibi_kernel(x_ptr, slopes_ptr, out_ptr, n, heads, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    head = row // n % heads
    slope = tl.load(slopes_ptr + 2 * head)
    x = tl.load(x_ptr + row * n + c, mask=c < n)
    tl.store(out_ptr + row * n + c, x - slope * tl.abs(row % n - c).to(tl.float32), mask=c < n)


class ModelNew(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.register_buffer("slopes", 2.0 ** -torch.arange(1, heads + 1).float())
        self.packed = torch.stack([self.slopes, -self.slopes], 1).contiguous()

    def forward(self, scores):
        out = torch.empty_like(scores)
        b, h, n, _ = scores.shape
        alibi_kernel[(b * h * n,)](scores, self.packed, out, n, h, BLOCK=triton.next_power_of_2(n))
        return out
