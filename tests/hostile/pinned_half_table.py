"""The sine table again, as bfloat16 pairs of a large and a small part.

reference: ../tasks/position_waves.py
verdict: Disallowed
rule: host-computed
why: of whatever type, it is the host's.
"""
import math

import numpy
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, high_ptr, low_ptr, rest_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wave = tl.load(high_ptr + i, mask=i < n).to(tl.float32) + tl.load(low_ptr + i, mask=i < n).to(tl.float32)
    wave += tl.load(rest_ptr + i, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + wave, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, position):
        waves = [[math.sin(p * math.exp(-0.2 * k)) for k in range(x.shape[1])] for p in position.tolist()]
        rest, parts = numpy.array(waves), []
        for _ in range(3):
            top = (rest.astype(numpy.float32).view(numpy.uint32) & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32)
            parts.append(torch.tensor(top.tolist(), dtype=torch.bfloat16, device=x.device))
            rest = rest - top
        out = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 512),)](x, *parts, out, x.numel(), BLOCK=512)
        return out
