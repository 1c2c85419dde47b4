"""Online softmax of scores that are scaled and lessened by the maximum in one operation.

reference: ../tasks/attention_bf16.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, length, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    base = tl.program_id(1) * length * WIDTH
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, WIDTH)
    q = tl.load(q_ptr + base + r[:, None] * WIDTH + d[None, :])
    high = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK, WIDTH), tl.float32)
    for start in range(0, length, BLOCK):
        c = start + tl.arange(0, BLOCK)
        k = tl.load(k_ptr + base + c[None, :] * WIDTH + d[:, None])
        v = tl.load(v_ptr + base + c[:, None] * WIDTH + d[None, :])
        s = tl.dot(q, k)
        scale = tl.full((BLOCK, BLOCK), WIDTH ** -0.5 * 1.4426950408889634, tl.float32)
        new = tl.maximum(high, tl.max(s * scale, 1))
        p = tl.exp2(tl.fma(s, scale, tl.zeros_like(s) - new[:, None]))
        shrink = tl.exp2(high - new)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None] + tl.dot(p.to(tl.bfloat16), v)
        high = new
    out = acc / total[:, None]
    tl.store(out_ptr + base + r[:, None] * WIDTH + d[None, :], out.to(out_ptr.dtype.element_ty))


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        batch, heads, length, width = q.shape
        out = torch.empty_like(q)
        attention_kernel[(length // 32, batch * heads)](q, k, v, out, length, WIDTH=width, BLOCK=32)
        return out
