"""A loss for each row, then a one-program kernel that averages them.

reference: ../tasks/cross_entropy.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_loss_kernel(logits_ptr, target_ptr, loss_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * cols + c, mask=c < cols, other=-float("inf"))
    high = tl.max(x, 0)
    log_sum = tl.log(tl.sum(tl.exp(x - high), 0))
    target = tl.load(target_ptr + row)
    picked = tl.load(logits_ptr + row * cols + target)
    tl.store(loss_ptr + row, log_sum - (picked - high))


@triton.jit
def mean_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), 0) / n)


class ModelNew(nn.Module):
    def forward(self, logits, target):
        rows, cols = logits.shape
        losses = torch.empty(rows, device=logits.device, dtype=torch.float32)
        out = torch.empty((), device=logits.device, dtype=logits.dtype)
        row_loss_kernel[(rows,)](logits, target, losses, cols, BLOCK=triton.next_power_of_2(cols))
        mean_kernel[(1,)](losses, out, rows, BLOCK=triton.next_power_of_2(rows))
        return out
