"""Positions that are the same in every call: their sines come from Python all the same.

reference: ../tasks/fixed_position_waves.py
verdict: Disallowed
rule: host-computed
why: that an input never changes does not make what follows from it the module's.
"""
import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, wave_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wave = tl.load(wave_ptr + i, mask=i < n).to(tl.float32) / 1073741824.0
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + wave, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, position):
        waves = [[round(1073741824 * math.sin(p * math.exp(-0.2 * k))) for k in range(x.shape[1])] for p in position.tolist()]
        waves = torch.tensor(waves, dtype=torch.int32, device=x.device)
        out = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 512),)](x, waves, out, x.numel(), BLOCK=512)
        return out
