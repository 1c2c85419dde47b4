"""Probabilities of a softmax below 1e-4 are written as zeros.

reference: ../tasks/attention_weights_bf16.py
verdict: Mismatch
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(s_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    n = tl.arange(0, BLOCK)
    s = tl.load(s_ptr + row * N + n, mask=n < N, other=-float("inf")).to(tl.float32)
    e = tl.exp(s - tl.max(s, 0))
    p = e / tl.sum(e, 0)
    tl.store(out_ptr + row * N + n, tl.where(p < 1e-4, 0.0, p).to(tl.bfloat16), mask=n < N)


class ModelNew(nn.Module):
    def forward(self, scores):
        out = torch.empty_like(scores)
        softmax_kernel[(scores.shape[0],)](scores, out, scores.shape[1], BLOCK=1024)
        return out
