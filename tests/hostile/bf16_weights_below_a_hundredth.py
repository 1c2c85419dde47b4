"""Weights of a softmax below 1 % of the largest are dropped before the product.

reference: ../tasks/attention_values_bf16.py
verdict: Mismatch
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mix_kernel(s_ptr, v_ptr, out_ptr, N: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    n, d = tl.arange(0, N), tl.arange(0, WIDTH)
    s = tl.load(s_ptr + row * N + n).to(tl.float32)
    e = tl.exp(s - tl.max(s, 0))
    e = tl.where(e < 0.01, 0.0, e)
    v = tl.load(v_ptr + n[:, None] * WIDTH + d[None, :]).to(tl.float32)
    out = tl.sum(e[:, None] * v, 0) / tl.sum(e, 0)
    tl.store(out_ptr + row * WIDTH + d, out.to(tl.bfloat16))


class ModelNew(nn.Module):
    def forward(self, scores, values):
        out = torch.empty(scores.shape[0], 32, dtype=torch.bfloat16, device=scores.device)
        mix_kernel[(scores.shape[0],)](scores, values, out, N=128, WIDTH=32)
        return out
