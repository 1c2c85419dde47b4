"""tl.associative_scan over pairs.

reference: ../tasks/linear_scan.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def compose(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def scan_kernel(a_ptr, b_ptr, out_ptr, steps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    t = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + row * steps + t, mask=t < steps, other=1.0)
    b = tl.load(b_ptr + row * steps + t, mask=t < steps, other=0.0)
    _, h = tl.associative_scan((a, b), 0, compose)
    tl.store(out_ptr + row * steps + t, h, mask=t < steps)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(b)
        scan_kernel[(b.shape[0],)](a, b, out, b.shape[1], BLOCK=triton.next_power_of_2(b.shape[1]))
        return out
