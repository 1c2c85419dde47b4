"""As often as a compile-time number of the host says.

reference: ../tasks/scaled_by_squares.py
verdict: Disallowed
rule: host-computed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, size, N: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < size, other=0.0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for _ in range(N):
        acc += x
    tl.store(out_ptr + i, acc, mask=i < size)


class ModelNew(nn.Module):
    def forward(self, x, counts):
        n = sum(v * v for v in counts.tolist())
        out = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), n, BLOCK=256)
        return out
