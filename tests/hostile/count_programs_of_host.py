"""How many programs there are is the factor.

reference: ../tasks/scaled_by_squares.py
verdict: Disallowed
rule: host-computed
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < size, other=0.0)
    n = tl.num_programs(1).to(tl.float32)
    tl.store(out_ptr + i, x * n, mask=(i < size) & (tl.program_id(1) == 0))


class ModelNew(nn.Module):
    def forward(self, x, counts):
        n = sum(v * v for v in counts.tolist())
        out = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 256), n)](x, out, x.numel(), BLOCK=256)
        return out
