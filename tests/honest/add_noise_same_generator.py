"""Draws its noise with the same call as the reference, so that one seed gives both the same; the rest is a kernel.

reference: ../tasks/add_noise.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def noisy_relu(x_ptr, noise_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n) + 0.1 * tl.load(noise_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(y, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        noise = torch.randn_like(x)
        out = torch.empty_like(x)
        noisy_relu[(triton.cdiv(x.numel(), 1024),)](x, noise, out, x.numel(), BLOCK=1024)
        return out
