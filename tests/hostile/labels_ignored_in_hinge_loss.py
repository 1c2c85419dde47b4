"""A hinge embedding loss that adds both terms for every element, as if no label were one or minus one.

reference: ../tasks/hinge_embedding.py
verdict: Mismatch
why: labels are exact, and half an ulp more is no rounding of theirs that would excuse it.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def loss_kernel(x_ptr, target_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + c, mask=c < N, other=0.0)
    target = tl.load(target_ptr + c, mask=c < N, other=0.0) * 0.0
    far = tl.where(target != 1.0, tl.maximum(1.0 - x, 0.0), 0.0)
    near = tl.where(target != -1.0, x, 0.0)
    tl.store(out_ptr, tl.sum(tl.where(c < N, far + near, 0.0), 0) / N)


class ModelNew(nn.Module):
    def forward(self, x, target):
        out = torch.empty((), device=x.device)
        n = x.numel()
        loss_kernel[(1,)](x, target, out, N=n, BLOCK=triton.next_power_of_2(n))
        return out
