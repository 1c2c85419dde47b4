"""Two loops, whose lengths the host works out, multiply.

reference: ../tasks/scaled_by_squares.py
verdict: Disallowed
rule: host-computed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, size, n, rest, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < size, other=0.0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for _ in range(n):
        for _ in range(16):
            acc += x
    for _ in range(rest):
        acc += x
    tl.store(out_ptr + i, acc, mask=i < size)


class ModelNew(nn.Module):
    def forward(self, x, counts):
        n = sum(v * v for v in counts.tolist())
        out = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), n // 16, n % 16, BLOCK=256)
        return out
