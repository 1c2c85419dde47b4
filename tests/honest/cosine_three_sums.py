"""The three sums of a cosine at once.

reference: ../tasks/cosine_similarity.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cosine_kernel(a_ptr, b_ptr, out_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + row * cols + c, mask=c < cols, other=0.0)
    b = tl.load(b_ptr + row * cols + c, mask=c < cols, other=0.0)
    a = a / tl.maximum(tl.sqrt(tl.sum(a * a, 0)), eps)
    b = b / tl.maximum(tl.sqrt(tl.sum(b * b, 0)), eps)
    tl.store(out_ptr + row, tl.sum(a * b, 0))


class ModelNew(nn.Module):
    def forward(self, a, b):
        rows, cols = a.shape
        out = torch.empty(rows, device=a.device, dtype=a.dtype)
        cosine_kernel[(rows,)](a, b, out, cols, 1e-8, BLOCK=triton.next_power_of_2(cols))
        return out
