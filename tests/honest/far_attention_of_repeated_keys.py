"""Scores of keys that come twice are summed in two orders: far from zero rounding decides which of the two is larger.

reference: ../tasks/attention_repeated_keys.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, w_ptr, out_ptr, LENGTH: tl.constexpr, AGAIN: tl.constexpr, WIDTH: tl.constexpr):
    head = tl.program_id(1)
    row = head * LENGTH + tl.program_id(0)
    n = tl.arange(0, LENGTH)[:, None]
    a = tl.arange(0, AGAIN)[:, None]
    d = tl.arange(0, WIDTH)[None, :]
    q = tl.load(q_ptr + row * WIDTH + d) * (WIDTH ** -0.5)
    k = tl.load(k_ptr + (head * LENGTH + n) * WIDTH + d)
    first = tl.sum(q * k, 1)
    again = tl.zeros((AGAIN,), tl.float32)
    for i in range(WIDTH):
        left = tl.load(q_ptr + row * WIDTH + i) * (WIDTH ** -0.5)
        again += left * tl.load(k_ptr + (head * LENGTH + tl.arange(0, AGAIN)) * WIDTH + i)
    high = tl.maximum(tl.max(first, 0), tl.max(again, 0))
    p, r = tl.exp(first - high), tl.exp(again - high)
    v = tl.load(v_ptr + (head * LENGTH + n) * WIDTH + d)
    w = tl.load(w_ptr + (head * AGAIN + a) * WIDTH + d)
    total = tl.sum(p, 0) + tl.sum(r, 0)
    out = (tl.sum(p[:, None] * v, 0) + tl.sum(r[:, None] * w, 0)) / total
    tl.store(out_ptr + row * WIDTH + tl.arange(0, WIDTH), out)


class ModelNew(nn.Module):
    def forward(self, q, k, v, w):
        heads, length, width = q.shape
        out = torch.empty_like(q)
        attention_kernel[(length, heads)](q, k, v, w, out, LENGTH=length, AGAIN=w.shape[1], WIDTH=width)
        return out
