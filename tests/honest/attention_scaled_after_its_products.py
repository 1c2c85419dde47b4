"""Attention whose scores are scaled after the products: they overflow sooner than PyTorch's.

reference: ../tasks/attention_of_three_products.py
verdict: Verified
"""

import torch
from torch import nn
import triton
import triton.language as tl


@triton.jit
def larger_of(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def kernel(
    q_ptr,
    k_ptr,
    g_ptr,
    l_ptr,
    v_ptr,
    out_ptr,
    T: tl.constexpr,
    E: tl.constexpr,
    F: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_F: tl.constexpr,
):
    batch, row = tl.program_id(0), tl.program_id(1)
    t = tl.arange(0, BLOCK)[:, None]
    e = tl.arange(0, BLOCK_E)[None, :]
    f = tl.arange(0, BLOCK_F)[None, :]
    inside = (t < T) & (e < E)
    at = (batch * T + t) * E + e
    query = tl.load(q_ptr + (batch * T + row) * E + e, mask=e < E, other=0.0)
    key = tl.load(k_ptr + at, mask=inside, other=0.0) * tl.load(g_ptr + at, mask=inside, other=0.0)
    key *= tl.load(l_ptr + e, mask=e < E, other=0.0)
    score = tl.sum(query * key, axis=1)[:, None] * 0.1
    score = tl.where((t <= row) & (t < T), score, float("-inf"))
    weight = tl.exp(score - tl.reduce(score, 0, larger_of)[None, :])
    value = tl.load(v_ptr + (batch * T + t) * F + f, mask=(t < T) & (f < F), other=0.0)
    total = tl.sum(tl.where(t <= row, weight * value, 0.0), axis=0)
    out = total / tl.sum(weight)
    tl.store(out_ptr + (batch * T + row) * F + tl.arange(0, BLOCK_F), out, mask=tl.arange(0, BLOCK_F) < F)


class ModelNew(nn.Module):
    def forward(self, query, key, gate, level, value):
        batch, steps, width = query.shape
        out = torch.empty_like(value)
        kernel[(batch, steps)](
            query,
            key,
            gate,
            level,
            value,
            out,
            T=steps,
            E=width,
            F=value.shape[2],
            BLOCK=8,
            BLOCK_E=64,
            BLOCK_F=32,
        )
        return out
