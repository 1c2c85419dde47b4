"""Every row adds its share to one number with an atomic.

reference: ../tasks/cross_entropy.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def loss_kernel(logits_ptr, target_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    target = tl.load(target_ptr + row)
    high = -float("inf")
    total = 0.0
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * cols + c, mask=c < cols, other=-float("inf"))
        higher = tl.maximum(high, tl.max(x, 0))
        total = total * tl.exp(high - higher) + tl.sum(tl.exp(x - higher), 0)
        high = higher
    picked = tl.load(logits_ptr + row * cols + target)
    tl.atomic_add(out_ptr, (high - picked + tl.log(total)) / rows)


class ModelNew(nn.Module):
    def forward(self, logits, target):
        rows, cols = logits.shape
        out = torch.zeros((), device=logits.device, dtype=torch.float32)
        loss_kernel[(rows,)](logits, target, out, rows, cols, BLOCK=512)
        return out
