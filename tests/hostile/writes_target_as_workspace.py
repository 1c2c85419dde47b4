"""Keeps its partial sums in the target, the second input.

reference: ../tasks/mse_loss.py
verdict: Disallowed
rule: input-written
why: the second input is an input as well.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def loss_kernel(p_ptr, t_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        d = tl.load(p_ptr + i, mask=i < n, other=0.0) - tl.load(t_ptr + i, mask=i < n, other=0.0)
        total += d * d
    tl.store(t_ptr, tl.sum(total, 0) / n)


class ModelNew(nn.Module):
    def forward(self, prediction, target):
        loss_kernel[(1,)](prediction, target, prediction.numel(), BLOCK=2048)
        return target[0, 0].clone()
