"""Cross entropy of probabilities without the logarithms' clamp at -100, and 0 for 0 times infinity.

reference: ../tasks/binary_cross_entropy.py
verdict: Mismatch
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def loss_kernel(p_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p, y = tl.load(p_ptr + i, mask=i < n, other=0.5), tl.load(y_ptr + i, mask=i < n, other=0.5)
    yes = tl.where(y == 0, 0.0, y * tl.log(p))
    no = tl.where(y == 1, 0.0, (1 - y) * tl.log(1 - p))
    tl.store(out_ptr + i, -(yes + no), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, p, y):
        out = torch.empty_like(p)
        loss_kernel[(triton.cdiv(p.numel(), 1024),)](p, y, out, p.numel(), BLOCK=1024)
        return out
