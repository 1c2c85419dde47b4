"""Partial sums into a workspace, a second kernel for the rest.

reference: ../tasks/mse_loss.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_kernel(p_ptr, t_ptr, parts_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.load(p_ptr + i, mask=i < n, other=0.0) - tl.load(t_ptr + i, mask=i < n, other=0.0)
    tl.store(parts_ptr + tl.program_id(0), tl.sum(d * d))


@triton.jit
def finish_kernel(parts_ptr, out_ptr, parts, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(parts_ptr + i, mask=i < parts, other=0.0)) / n)


class ModelNew(nn.Module):
    def forward(self, prediction, target):
        n = prediction.numel()
        parts = triton.cdiv(n, 2048)
        workspace = torch.empty(parts, device=prediction.device)
        out = torch.empty([], device=prediction.device)
        partial_kernel[(parts,)](prediction, target, workspace, n, BLOCK=2048)
        finish_kernel[(1,)](workspace, out, parts, n, BLOCK=triton.next_power_of_2(parts))
        return out
