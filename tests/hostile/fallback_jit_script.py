"""Hides the product in TorchScript.

reference: ../tasks/matmul.py
verdict: Disallowed or Untraceable
rule: aten-compute or python-error or not-traceable or no-launch
why: TorchScript's calls pass through the dispatcher too, or the tracer refuses to run it.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


@torch.jit.script
def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.mm(a, b)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return copy(product(a, b))
