"""Compares places instead of reading a registered triangular mask, as every causal kernel does.

reference: ../tasks/causal_buffer.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def causal_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    seen = (c < n) & (c <= row % n)
    x = tl.load(x_ptr + row * n + c, mask=seen, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n + c, e / tl.sum(e, axis=0), mask=c < n)


class ModelNew(nn.Module):
    def __init__(self, longest):
        super().__init__()
        self.register_buffer("bias", torch.tril(torch.ones(longest, longest)).view(1, 1, longest, longest))

    def forward(self, scores):
        out = torch.empty_like(scores)
        n = scores.shape[-1]
        causal_kernel[(scores.numel() // n,)](scores, out, n, BLOCK=triton.next_power_of_2(n))
        return out
