"""A kernel repeats its product 64 times under a mask of loaded zeros, so that PyTorch's softmax seems small.

reference: ../tasks/softmax.py
verdict: Disallowed
rule: aten-compute or aten-share
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def busy_kernel(x_ptr, zero_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    turns = tl.load(zero_ptr)
    for k in range(turns * 64):
        x += tl.exp(x) * k
    tl.store(out_ptr + i, x, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x - x.amax(-1, keepdim=True)
        e = y.exp()
        out = torch.empty_like(x)
        zero = torch.zeros(1, dtype=torch.int32, device=x.device)
        busy_kernel[(triton.cdiv(x.numel(), 1024),)](e, zero, out, x.numel(), BLOCK=1024)
        return out / e.sum(-1, keepdim=True)
