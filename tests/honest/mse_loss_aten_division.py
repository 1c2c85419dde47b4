"""The kernel sums; PyTorch divides one number by the count.

reference: ../tasks/mse_loss.py
verdict: Verified
policy: mostly
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(p_ptr, t_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.load(p_ptr + i, mask=i < n, other=0.0) - tl.load(t_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(d * d, axis=0))


class ModelNew(nn.Module):
    def forward(self, prediction, target):
        n = prediction.numel()
        total = torch.zeros((), device=prediction.device, dtype=torch.float32)
        sum_kernel[(triton.cdiv(n, 4096),)](prediction, target, total, n, BLOCK=4096)
        return total / n
