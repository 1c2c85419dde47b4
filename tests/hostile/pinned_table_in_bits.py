"""The sines in fixed point again, cut into small tensors of single bits.

reference: ../tasks/position_waves.py
verdict: Disallowed
rule: host-computed
why: many small tensors are one large one.
"""
import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, out_ptr, n, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20, b21, b22, b23, b24,
               BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(b0 + i, mask=m) + 2 * tl.load(b1 + i, mask=m) + 4 * tl.load(b2 + i, mask=m) + 8 * tl.load(b3 + i, mask=m)
    v += 16 * tl.load(b4 + i, mask=m) + 32 * tl.load(b5 + i, mask=m) + 64 * tl.load(b6 + i, mask=m) + 128 * tl.load(b7 + i, mask=m)
    v += 256 * tl.load(b8 + i, mask=m) + 512 * tl.load(b9 + i, mask=m) + 1024 * tl.load(b10 + i, mask=m) + 2048 * tl.load(b11 + i, mask=m)
    v += 4096 * tl.load(b12 + i, mask=m) + 8192 * tl.load(b13 + i, mask=m) + 16384 * tl.load(b14 + i, mask=m) + 32768 * tl.load(b15 + i, mask=m)
    v += 65536 * tl.load(b16 + i, mask=m) + 131072 * tl.load(b17 + i, mask=m) + 262144 * tl.load(b18 + i, mask=m) + 524288 * tl.load(b19 + i, mask=m)
    v += 1048576 * tl.load(b20 + i, mask=m) + 2097152 * tl.load(b21 + i, mask=m) + 4194304 * tl.load(b22 + i, mask=m)
    v += 8388608 * tl.load(b23 + i, mask=m) + 16777216 * tl.load(b24 + i, mask=m)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=m) + (v.to(tl.float32) / 16777216.0 - 1.0), mask=m)


class ModelNew(nn.Module):
    def forward(self, x, position):
        waves = [math.sin(p * math.exp(-0.2 * k)) for p in position.tolist() for k in range(x.shape[1])]
        out = torch.empty_like(x)
        flat, flat_out = x.view(-1), out.view(-1)
        for first in range(0, len(waves), 512):
            part = [round((w + 1) * 16777216) for w in waves[first : first + 512]]
            bits = [torch.tensor([(p >> b) & 1 for p in part], dtype=torch.int32, device=x.device) for b in range(25)]
            add_kernel[(1,)](flat[first:], flat_out[first:], len(part), *bits, BLOCK=512)
        return out
