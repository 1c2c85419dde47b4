"""Both branches computed, the right one selected.

reference: ../tasks/huber_loss.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def huber_kernel(p_ptr, t_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    d = tl.abs(tl.load(p_ptr + i, mask=mask) - tl.load(t_ptr + i, mask=mask))
    tl.store(out_ptr + i, tl.where(d < 1.0, 0.5 * d * d, d - 0.5), mask=mask)


class ModelNew(nn.Module):
    def forward(self, prediction, target):
        out = torch.empty_like(prediction)
        n = out.numel()
        huber_kernel[(triton.cdiv(n, 1024),)](prediction.contiguous(), target.contiguous(), out, n, BLOCK=1024)
        return out
